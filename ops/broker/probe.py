"""Ask an address whether a Kafka broker answers, and wait until a new one does its work."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable

from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient

from tallystick.errors import BrokerUnavailable

ANSWER_S = 5.0
"""Lower mistakes a busy broker for none; higher makes `--kind auto` slow where none is."""

ASK_S = 1.0
"""One question to a starting broker; lower gives up on answers that are on their way."""

_CLIENT: dict[str, str | int | bool] = {
    "log_level": 0,  # a refused connection is the answer, not a fault worth a line
    "reconnect.backoff.ms": 20,
    "reconnect.backoff.max.ms": 200,  # higher is felt at the end of each broker start
    "allow.auto.create.topics": False,
}


def brokers_at(bootstrap: str, within_s: float = ANSWER_S) -> int:
    """How many brokers the cluster at `bootstrap` says it has; 0 if nobody answers."""
    try:
        client = AdminClient({**_CLIENT, "bootstrap.servers": bootstrap})
        return len(client.list_topics(timeout=within_s).brokers)
    except (KafkaException, ValueError):
        return 0


def wait_ready(
    bootstrap: str, *, brokers: int, within_s: float, still_alive: Callable[[], None]
) -> None:
    """Return once all brokers are in the cluster and a transactional producer can begin.

    Raises BrokerUnavailable when time is up, and whatever `still_alive` raises: it is called
    between questions so that a broker that died is noticed at once.
    """
    deadline = time.monotonic() + within_s
    client = AdminClient({**_CLIENT, "bootstrap.servers": bootstrap})
    joined = 0
    while joined < brokers:
        still_alive()
        _check_time(bootstrap, deadline, within_s, f"{joined} of {brokers} brokers answer")
        try:
            joined = len(client.list_topics(timeout=ASK_S).brokers)
        except KafkaException:
            continue
        if joined < brokers:
            time.sleep(0.05)
    _wait_transactions(bootstrap, deadline, within_s, still_alive)
    still_alive()  # or a stranger on the same port has answered for a broker that could not bind


def _wait_transactions(
    bootstrap: str, deadline: float, within_s: float, still_alive: Callable[[], None]
) -> None:
    producer = Producer(
        {
            **_CLIENT,
            "bootstrap.servers": bootstrap,
            "transactional.id": f"tallystick-probe-{uuid.uuid4()}",
        }
    )
    while True:
        still_alive()
        _check_time(bootstrap, deadline, within_s, "transactions do not begin")
        try:
            producer.init_transactions(ASK_S)
        except KafkaException as error:
            if error.args[0].retriable():
                continue
            raise BrokerUnavailable(
                f"transactions do not begin: {error.args[0].str()}",
                where=bootstrap,
                fix="use Kafka 3.6 or later",
            ) from error
        return


def _check_time(bootstrap: str, deadline: float, within_s: float, found: str) -> None:
    if time.monotonic() > deadline:
        raise BrokerUnavailable(
            f"not ready after {within_s:.0f} s: {found}",
            where=bootstrap,
            fix="look at the broker's log in the state folder",
        )
