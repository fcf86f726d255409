"""The error tree, split by who must act: the caller, the operator, or us.

Every error carries a stable `code`, whether trying again can help (`retryable`) and the exit
code that the command line ends with. Business outcomes (rejected, partial, drift) are records,
not exceptions; an exception means that an answer could not be given.
"""

from __future__ import annotations

from enum import IntEnum
from typing import ClassVar


class ExitCode(IntEnum):
    """Exit codes of every command; the same value a run's outcome carries (DESIGN.md)."""

    SUCCESS = 0
    FAILED = 1
    USAGE = 2
    PARTIAL = 3
    UNKNOWN = 4
    BLOCKED = 5
    ABORTED = 130


class TallyError(Exception):
    """Root of the tree; never raised itself."""

    code: ClassVar[str] = "tally_error"
    retryable: ClassVar[bool] = False
    exit_code: ClassVar[ExitCode] = ExitCode.FAILED

    def __init__(self, message: str, *, where: str = "", fix: str = "") -> None:
        if type(self) is TallyError:
            raise TypeError("raise a child of TallyError: it says who must act")
        super().__init__(message)
        self.message = message
        self.where = where
        self.fix = fix

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        todo = f" ({self.fix})" if self.fix else ""
        return f"{place}{self.message}{todo}"


class CallerError(TallyError):
    """The caller's input is wrong: change it and ask again."""

    code = "bad_input"
    exit_code = ExitCode.USAGE


class CanonicalError(CallerError):
    """A value has no canonical JSON form (RFC 8785): NaN, lone surrogate, duplicate key."""

    code = "not_canonical"


class PlanError(CallerError):
    """A plan is malformed: empty, repeated identity, unknown field, too large."""

    code = "bad_plan"


class ContractError(CallerError):
    """A contract file is malformed, or names something that the plan or target lacks."""

    code = "bad_contract"


class DriftError(CallerError):
    """Another plan is frozen under this commit key; `frozen` is that plan's `plan_hash`."""

    code = "plan_drift"

    def __init__(self, message: str, *, frozen: str, where: str = "", fix: str = "") -> None:
        super().__init__(message, where=where, fix=fix)
        self.frozen = frozen


class RefusedError(CallerError):
    """The ledger refused the request; `reason` is the broken rule's name."""

    code = "refused"

    def __init__(self, message: str, *, reason: str, where: str = "", fix: str = "") -> None:
        super().__init__(message, where=where, fix=fix)
        self.reason = reason


class OperatorError(TallyError):
    """Something around the software is missing or set up wrongly: an operator acts."""

    code = "operator"


class BrokerUnavailable(OperatorError):
    """No broker answers at the bootstrap address. Start one, or correct the address."""

    code = "broker_unavailable"
    retryable = True


class TopicMismatch(OperatorError):
    """A topic is missing or differs from the catalogue. Run `tallystick topics diff`."""

    code = "topic_mismatch"


class SchemaIncompatible(OperatorError):
    """A schema breaks a released version; the registry or the compatibility check refused it."""

    code = "schema_incompatible"


class StateLocked(OperatorError):
    """Another live process owns this state folder. Stop it, or give each worker its own."""

    code = "state_locked"


class StateCorrupt(OperatorError):
    """A store cannot be opened even after a wipe. Check the disk, then start again."""

    code = "state_corrupt"


class SourceTruncated(OperatorError):
    """The committed offset lies below the log's start: records were lost to retention.

    The worker stops instead of jumping over them. Restore the topic, or accept the loss with
    an explicit offset reset.
    """

    code = "source_truncated"


class WaitTimeout(TallyError):
    """The caller waited as long as it asked to; the commit goes on and can be asked again."""

    code = "wait_timeout"
    retryable = True
    exit_code = ExitCode.UNKNOWN


class UndecodableRecord(TallyError):
    """A record's bytes do not follow any known schema; it goes to `dead-letters`."""

    code = "undecodable"


class InvariantBroken(TallyError):
    """A rule that the code itself must keep is broken: our fault, and the partition stops."""

    code = "invariant_broken"


def invariant(held: bool, rule: str) -> None:
    """Stop when a rule of the code itself does not hold; stays on under `python -O`."""
    if not held:
        raise InvariantBroken(f"invariant broken: {rule}", fix="report this with the log around it")
