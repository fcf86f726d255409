"""A broker that somebody else runs: look whether it answers, and never end it."""

from __future__ import annotations

from ops.broker.kinds import BrokerHandle, BrokerKind, BrokerState
from ops.broker.probe import ANSWER_S, brokers_at
from tallystick.errors import BrokerUnavailable, CallerError


class AttachedBroker(BrokerHandle):
    """A broker owned by another process; `stop` leaves it alone."""

    def __init__(self, state: BrokerState) -> None:
        self._state = state

    @property
    def state(self) -> BrokerState:
        """What was found, or what the owner said."""
        return self._state

    def stop(self) -> None:
        """Nothing: whoever started it ends it."""


def attach(bootstrap: str, within_s: float = ANSWER_S) -> AttachedBroker:
    """Use the broker at `bootstrap`; raises BrokerUnavailable if nobody answers there."""
    if not bootstrap:
        raise CallerError(
            "an external broker needs an address",
            where="--bootstrap",
            fix="give one, or set TALLYSTICK_BOOTSTRAP",
        )
    if brokers_at(bootstrap, within_s) == 0:
        raise BrokerUnavailable(
            f"no broker answers within {within_s:.0f} s",
            where=bootstrap,
            fix="start one, or correct the address",
        )
    return AttachedBroker(
        BrokerState(kind=BrokerKind.EXTERNAL, bootstrap=bootstrap, version="unknown")
    )
