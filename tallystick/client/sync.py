"""`Tally`: the blocking client; everything else is built on its `submit`."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Mapping
from types import TracebackType

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from tallystick.client.listener import Listener
from tallystick.client.waiting import Ending, Pending, Progress, Waiters
from tallystick.codec import Codec, FingerprintCodec
from tallystick.errors import BrokerUnavailable, TopicMismatch
from tallystick.events import event_headers
from tallystick.partitioning import partition_for
from tallystick.protocol import COMMIT_WITHIN_MS
from tallystick.records import Plan, PlanRequest, Record, Resolution, ResolutionVerdict
from tallystick.topics import DEFAULT_PREFIX, Topic, check_prefix, full_name

CONNECT_S = 5.0
"""How long the first contact may take. Lower: a broker under load counts as away. Higher: a wrong
address is noticed later."""

DELIVERY_MS = 30_000
"""How long a request may take to reach the log. Lower: a leader election fails requests that
would have arrived. Higher: a broker that is away is reported later."""

FLUSH_S = 5.0
"""How long `close` waits for requests on their way."""


class Tally:
    """A connection to the ledger; share one among threads, and close it."""

    def __init__(
        self,
        *,
        bootstrap: str,
        prefix: str = DEFAULT_PREFIX,
        codec: Codec | None = None,
        config: Mapping[str, str | int | bool] | None = None,
    ) -> None:
        self._prefix = check_prefix(prefix)
        self._codec = codec or FingerprintCodec()
        base = {"bootstrap.servers": bootstrap, "log_level": 0, **(config or {})}
        self._producer = Producer(
            {
                **base,
                "enable.idempotence": True,
                "acks": "all",
                "linger.ms": 0,
                "delivery.timeout.ms": DELIVERY_MS,
            }
        )
        self._partitions = self._look_up(bootstrap)
        self._waiters = Waiters()
        self._listener = Listener(base, self._prefix, self._codec, self._waiters)
        self._closing = threading.Event()
        self._pump = threading.Thread(target=self._poll, name="tally-producer", daemon=True)
        self._pump.start()

    @classmethod
    def connect(
        cls,
        bootstrap: str = "127.0.0.1:9092",
        *,
        prefix: str = DEFAULT_PREFIX,
        codec: Codec | None = None,
        config: Mapping[str, str | int | bool] | None = None,
    ) -> Tally:
        """Connect to the ledger behind `bootstrap`.

        `config` goes to librdkafka as it is (security, client id). Raises BrokerUnavailable when
        nobody answers within 5 s, TopicMismatch when the topics do not exist.
        """
        return cls(bootstrap=bootstrap, prefix=prefix, codec=codec, config=config)

    def commit(
        self,
        plan: Plan,
        *,
        wait_s: float | None = None,
        commit_within_ms: int = COMMIT_WITHIN_MS,
        supersedes: str | None = None,
        session_id: str | None = None,
        run_id: str | None = None,
        on_progress: Callable[[Progress], None] | None = None,
    ) -> Ending:
        """Freeze `plan`, have it carried out, and return its Receipt or PartialSuccess.

        Waits at most `wait_s` seconds (None: until the round's own deadline has surely passed),
        then raises WaitTimeout; the commit goes on. The same plan again returns the same receipt.
        Raises DriftError when another plan is frozen under the key, RefusedError for a request
        that the ledger cannot take.
        """
        pending = self.submit(
            plan,
            commit_within_ms=commit_within_ms,
            supersedes=supersedes,
            session_id=session_id,
            run_id=run_id,
            on_progress=on_progress,
        )
        return pending.result(wait_or_deadline_s(wait_s, commit_within_ms))

    def submit(
        self,
        plan: Plan,
        *,
        commit_within_ms: int = COMMIT_WITHIN_MS,
        supersedes: str | None = None,
        session_id: str | None = None,
        run_id: str | None = None,
        on_progress: Callable[[Progress], None] | None = None,
    ) -> Pending:
        """Send the request and return at once; `Pending.result` waits."""
        request = PlanRequest(
            request_id=uuid.uuid4().hex,
            session_id=session_id,
            run_id=run_id,
            supersedes=supersedes,
            commit_within_ms=commit_within_ms,
            plan=plan,
        )
        pending = Pending(
            commit_key=plan.commit_key,
            request_id=request.request_id,
            plan_hash=plan.plan_hash,
            planned=len(plan.items),
            on_progress=on_progress,
        )
        partition = partition_for(plan.commit_key, self._partitions)
        self._listener.watch(partition, progress=on_progress is not None)
        self._waiters.add(pending)

        def delivered(error: KafkaError | None, _message: Message) -> None:
            if error is not None:
                pending.fail(_undelivered(error))

        self._send(Topic.PLAN_REQUESTS, plan.commit_key, request, request.request_id, delivered)
        return pending

    def resolve(
        self,
        intent_id: str,
        *,
        commit_key: str,
        applied: bool,
        evidence: str,
        resolved_by: str,
    ) -> Resolution:
        """Log evidence from outside about an unknown effect; returns once it is in the log."""
        resolution = Resolution(
            resolution_id=uuid.uuid4().hex,
            commit_key=commit_key,
            intent_id=intent_id,
            verdict=ResolutionVerdict.APPLIED if applied else ResolutionVerdict.ABSENT,
            evidence=evidence,
            resolved_by=resolved_by,
        )
        done = threading.Event()
        errors: list[KafkaError] = []

        def delivered(error: KafkaError | None, _message: Message) -> None:
            if error is not None:
                errors.append(error)
            done.set()

        self._send(Topic.RESOLUTIONS, commit_key, resolution, resolution.resolution_id, delivered)
        if not done.wait(DELIVERY_MS / 1_000 + CONNECT_S) or errors:
            raise _undelivered(errors[0] if errors else None)
        return resolution

    def close(self) -> None:
        """Stop; requests on their way are given a moment to arrive."""
        self._producer.flush(FLUSH_S)
        self._closing.set()
        self._pump.join()
        self._listener.close()

    def __enter__(self) -> Tally:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _send(
        self,
        topic: Topic,
        key: str,
        record: Record,
        event_id: str,
        delivered: Callable[[KafkaError | None, Message], None],
    ) -> None:
        value, headers = self._codec.encode(topic, record)
        self._producer.produce(
            full_name(self._prefix, topic),
            key=key.encode(),
            value=value,
            partition=partition_for(key, self._partitions),
            headers=[*event_headers(topic, "tallystick/client", event_id), *headers],
            on_delivery=delivered,
        )

    def _poll(self) -> None:
        while not self._closing.is_set():
            self._producer.poll(0.1)

    def _look_up(self, bootstrap: str) -> int:
        """The partition count of the commits stage; proves that a broker answers."""
        name = full_name(self._prefix, Topic.PLAN_REQUESTS)
        try:
            topics = self._producer.list_topics(timeout=CONNECT_S).topics
        except KafkaException as error:
            raise BrokerUnavailable(
                f"no Kafka broker answers within {CONNECT_S:g} s",
                where=bootstrap,
                fix="start one with `tallystick broker up`, or correct --bootstrap",
            ) from error
        if name not in topics:
            raise TopicMismatch(
                f"topic {name} does not exist",
                where=bootstrap,
                fix="run `tallystick topics create`, or correct --prefix",
            )
        return len(topics[name].partitions)


def wait_or_deadline_s(wait_s: float | None, commit_within_ms: int) -> float:
    """The caller's own patience, or the round's deadline and some time for its record to come."""
    return commit_within_ms / 1_000 + CONNECT_S if wait_s is None else wait_s


def _undelivered(error: KafkaError | None) -> BrokerUnavailable:
    return BrokerUnavailable(
        f"the request did not reach the log: {error.str() if error else 'no answer'}",
        where="client",
        fix="check the broker, then ask again with the same plan; nothing is written twice",
    )
