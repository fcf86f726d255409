"""Make a broker's topics agree with the catalogue, and say where they do not.

Creating is idempotent and never changes a topic that exists: a partition count cannot be moved
without moving keys away from their state, and retention is an operator's decision.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # it has no __all__
    AdminClient,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from streams.catalogue import CATALOGUE, PARTITIONS, REPLICATION_MAX, TopicSpec
from tallystick.errors import BrokerUnavailable, TopicMismatch
from tallystick.topics import Topic, check_prefix, full_name

CONTACT_S = 5.0
"""How long the first answer may take. Lower: a broker under load counts as away. Higher: a wrong
address is noticed later."""

CALL_S = 20.0
"""How long one administrative call may take. Lower: many topics on a slow disk fail half-way.
Higher: a hung controller is noticed later."""

VISIBLE_EVERY_S = 0.02
"""Pause between two looks for new topics. Higher: creating them takes longer."""

T = TypeVar("T")
Config = Mapping[str, str | int | bool]


@dataclass(frozen=True, slots=True)
class Created:
    """What `create` did for one topic; `fresh` is False where it was there already."""

    name: str
    partitions: int
    fresh: bool


@dataclass(frozen=True, slots=True)
class ActualTopic:
    """A topic as the broker has it; `config` holds the settings that the catalogue names."""

    topic: Topic
    name: str
    partitions: int
    replication: int
    config: dict[str, str]


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing in which broker and catalogue differ; `what` is a setting's name,
    `partitions`, `replication` or `topic`."""

    name: str
    what: str
    expected: str
    actual: str

    def __str__(self) -> str:
        return f"{self.name}: {self.what} is {self.actual}, expected {self.expected}"


def open_admin(bootstrap: str, config: Config | None = None) -> AdminClient:
    """An admin client that has reached its broker; raises BrokerUnavailable within CONTACT_S."""
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0, **(config or {})})
    try:
        admin.list_topics(timeout=CONTACT_S)
    except KafkaException as error:
        raise BrokerUnavailable(
            f"no broker answers within {CONTACT_S:g} s: {error.args[0].str()}",
            where=bootstrap,
            fix="start one with `tallystick broker up`, or correct the address",
        ) from error
    return admin


def create(
    admin: AdminClient,
    prefix: str,
    *,
    partitions: int = PARTITIONS,
    replication: int | None = None,
    specs: Sequence[TopicSpec] = CATALOGUE,
) -> list[Created]:
    """Create the topics that are missing; `replication` None means as many as fit, at most 3.

    Returns once a broker shows them with a leader, so that a worker may start at once. Raises
    TopicMismatch for a topic that the broker refuses to create.
    """
    check_prefix(prefix)
    copies = replication or min(REPLICATION_MAX, _brokers(admin))
    wanted = {full_name(prefix, spec.topic): spec for spec in specs}
    futures = admin.create_topics(
        [
            NewTopic(name, partitions, copies, config=spec.config(copies))
            for name, spec in wanted.items()
        ],
        operation_timeout=CALL_S,
        request_timeout=CALL_S,
    )
    made = [Created(name, partitions, _created(name, futures[name])) for name in wanted]
    _await_visible(admin, [each.name for each in made if each.fresh])
    return made


def _await_visible(admin: AdminClient, names: Sequence[str]) -> None:
    """The controller answers before the brokers know the topic (KRaft metadata lags a little)."""
    deadline_s = time.monotonic() + CALL_S
    while missing := _not_visible(admin, names):
        if time.monotonic() > deadline_s:
            raise TopicMismatch(
                f"created, but no broker shows {', '.join(missing)} within {CALL_S:g} s",
                where=str(missing[0]),
                fix="look at the brokers' logs, then run `tallystick topics diff`",
            )
        time.sleep(VISIBLE_EVERY_S)


def _not_visible(admin: AdminClient, names: Sequence[str]) -> list[str]:
    topics = _called(lambda: admin.list_topics(timeout=CALL_S)).topics if names else {}
    return [
        name
        for name in names
        if name not in topics
        or topics[name].error is not None
        or not topics[name].partitions
        or any(part.leader < 0 for part in topics[name].partitions.values())
    ]


def _brokers(admin: AdminClient) -> int:
    return len(_called(lambda: admin.list_topics(timeout=CALL_S)).brokers)


def _created(name: str, future: Future[None]) -> bool:
    try:
        future.result(CALL_S)
    except KafkaException as error:
        problem: KafkaError = error.args[0]
        if problem.code() == KafkaError.TOPIC_ALREADY_EXISTS:
            return False
        raise TopicMismatch(
            f"broker does not create it: {problem.str()}",
            where=name,
            fix="check the replication factor and this client's rights",
        ) from error
    return True


def describe(
    admin: AdminClient, prefix: str, *, specs: Sequence[TopicSpec] = CATALOGUE
) -> list[ActualTopic]:
    """The catalogue's topics that exist under `prefix`, in the catalogue's order."""
    check_prefix(prefix)
    known = _called(lambda: admin.list_topics(timeout=CALL_S)).topics
    present = [spec for spec in specs if full_name(prefix, spec.topic) in known]
    if not present:
        return []
    resources = {
        spec.topic: ConfigResource(ResourceType.TOPIC, full_name(prefix, spec.topic))
        for spec in present
    }
    answers = admin.describe_configs(list(resources.values()), request_timeout=CALL_S)
    found = []
    for spec in present:
        name = full_name(prefix, spec.topic)
        future = answers[resources[spec.topic]]
        entries = _called(partial(future.result, CALL_S))
        parts = known[name].partitions
        replication = min((len(part.replicas) for part in parts.values()), default=0)
        config = {
            key: str(entries[key].value) for key in spec.config(replication) if key in entries
        }
        found.append(ActualTopic(spec.topic, name, len(parts), replication, config))
    return found


def diff(
    admin: AdminClient,
    prefix: str,
    *,
    partitions: int | None = None,
    replication: int | None = None,
    specs: Sequence[TopicSpec] = CATALOGUE,
) -> list[Difference]:
    """Where the broker differs from the catalogue; empty when they agree.

    Without `partitions`, each stage's topics are held to the count of its first one: they must
    be equal, whatever the number. Without `replication`, any factor is accepted.
    """
    actual = {found.topic: found for found in describe(admin, prefix, specs=specs)}
    counts: dict[str, int] = {}
    differences: list[Difference] = []
    for spec in specs:
        found = actual.get(spec.topic)
        if found is None:
            name = full_name(prefix, spec.topic)
            differences.append(Difference(name, "topic", "present", "missing"))
            continue
        count = partitions or counts.setdefault(spec.group, found.partitions)
        differences += _compared(spec, found, count, replication)
    return differences


def _compared(
    spec: TopicSpec, found: ActualTopic, partitions: int, replication: int | None
) -> list[Difference]:
    copies = replication or found.replication
    pairs = [
        ("partitions", str(partitions), str(found.partitions)),
        ("replication", str(copies), str(found.replication)),
        *(
            (key, expected, found.config.get(key, "not set"))
            for key, expected in spec.config(copies).items()
        ),
    ]
    return [
        Difference(found.name, what, expected, actual)
        for what, expected, actual in pairs
        if expected != actual
    ]


def _called(call: Callable[[], T]) -> T:
    try:
        return call()
    except KafkaException as error:
        problem: KafkaError = error.args[0]
        raise BrokerUnavailable(
            f"broker does not answer an administrative call: {problem.str()}",
            where="broker",
            fix="check that it is up and that this client may describe topics",
        ) from error
