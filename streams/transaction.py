"""One transactional producer: begin, produce, send offsets, commit, abort, and what errors mean.

Outputs, changelog rows and source offsets share one transaction (engine rule 1). Each call is
repeated as long as its error is retriable; what is neither retriable nor abortable is fatal
(engine rule 10). The watchdog bounds every call (engine rule 12).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import ClassVar, Protocol

from confluent_kafka import KafkaError, KafkaException, Message, Producer, TopicPartition

from streams.catalogue import message_bytes_max
from streams.outputs import Output
from streams.settings import KafkaValue
from streams.source import Cause
from streams.watchdog import Watchdog
from tallystick.errors import OperatorError, TallyError, invariant
from tallystick.topics import full_name

_log = logging.getLogger(__name__)

_ROOM_S = 0.05
"""Pause while the producer's queue is full or a call is to be repeated; reports end it early."""

_SERVE_EVERY = 256
"""Outputs between two looks at delivery reports. Higher: reports pile up in memory."""

_REFUSED = frozenset(
    {
        KafkaError.MSG_SIZE_TOO_LARGE,
        KafkaError.RECORD_LIST_TOO_LARGE,
        KafkaError.INVALID_RECORD,
        KafkaError.INVALID_MSG,
    }
)
"""Errors that a record itself earns: the same record would earn them again."""

_EXPIRED = frozenset({KafkaError.INVALID_PRODUCER_ID_MAPPING})
"""The broker forgot an idle transactional id; a new producer is all that is needed."""

_FENCED = frozenset(
    {
        KafkaError._FENCED,  # noqa: SLF001 - its public name
        KafkaError.PRODUCER_FENCED,
        KafkaError.INVALID_PRODUCER_EPOCH,
    }
)


class Fault(StrEnum):
    """What is to be done about an error (engine rule 10)."""

    RETRIABLE = "retriable"
    ABORTABLE = "abortable"
    FATAL = "fatal"


def classify(error: KafkaError) -> Fault:
    """An error's class; none of librdkafka's three marks means fatal (engine rule 10)."""
    if error.fatal():
        return Fault.FATAL
    if error.txn_requires_abort():
        return Fault.ABORTABLE
    if error.retriable() or error.code() == KafkaError._TIMED_OUT:  # noqa: SLF001 - public name
        return Fault.RETRIABLE
    return Fault.FATAL


class TransactionAborted(TallyError):
    """The open transaction must be aborted; `refused` names causes whose output was refused."""

    code: ClassVar[str] = "transaction_aborted"
    retryable: ClassVar[bool] = True

    def __init__(self, message: str, *, cause: str, refused: Sequence[Cause] = ()) -> None:
        super().__init__(message)
        self.cause = cause
        self.refused = tuple(refused)


class TransactionFatal(OperatorError):
    """The producer is unusable: it is destroyed and the process ends (engine rule 10).

    `fenced`: another process uses this slot, or a transaction outlived its timeout.
    `expired`: only the id was forgotten, a new producer may go on (engine rule 14).
    """

    code: ClassVar[str] = "transaction_fatal"

    def __init__(self, error: KafkaError, where: str) -> None:
        self.fenced = error.code() in _FENCED
        self.expired = error.code() in _EXPIRED
        fix = (
            "make sure that no other worker uses this slot, and that batches end within the "
            "transaction timeout; then start again"
            if self.fenced
            else "start again; if it stays, look at the broker's log"
        )
        super().__init__(f"producer is unusable: {error.str()}", where=where, fix=fix)


class TransactionSettings(Protocol):
    """What the producer needs to know; `LoopSettings` says what each bound is for."""

    @property
    def bootstrap(self) -> str: ...
    @property
    def prefix(self) -> str: ...
    @property
    def kafka(self) -> Mapping[str, KafkaValue]: ...
    @property
    def transaction_timeout_ms(self) -> int: ...
    @property
    def message_timeout_ms(self) -> int: ...
    @property
    def commit_try_ms(self) -> int: ...
    @property
    def broker_stuck_ms(self) -> int: ...


class _Batch:
    """Delivery reports of one transaction."""

    def __init__(self, changelog: str) -> None:
        self._changelog = changelog
        self.changelog_next: dict[int, int] = {}
        self.logged_at_ms: dict[Cause, int] = {}
        self.refused: list[Cause] = []
        self.sent = 0
        self.reported = 0
        self.problem = ""

    def report_for(self, cause: Cause) -> Callable[[KafkaError | None, Message], None]:
        """The callback that notes what became of one output."""

        def report(error: KafkaError | None, message: Message) -> None:
            self.reported += 1
            if error is not None:
                self._failed(error, message, cause)
            elif message.topic() == self._changelog:
                # Engine rule 17: offsets come from reports; counting would miss control records.
                partition, offset = message.partition() or 0, message.offset() or 0
                self.changelog_next[partition] = max(
                    offset + 1, self.changelog_next.get(partition, 0)
                )
            elif not self._changelog:
                self.logged_at_ms[cause] = message.timestamp()[1]

        return report

    def _failed(self, error: KafkaError, message: Message, cause: Cause) -> None:
        self.problem = self.problem or f"{message.topic()}: {error.str()}"
        if error.code() in _REFUSED and cause not in self.refused:
            self.refused.append(cause)


class TransactionalProducer:
    """The producer of one loop; all its calls are made on one thread.

    `changelog` is the short name of the topic whose offsets `commit` returns, if there is one.
    """

    def __init__(
        self,
        transactional_id: str,
        settings: TransactionSettings,
        watchdog: Watchdog,
        changelog: str = "",
    ) -> None:
        self._settings = settings
        self._watchdog = watchdog
        self._changelog = full_name(settings.prefix, changelog) if changelog else ""
        self._id = transactional_id
        self._names: dict[str, str] = {}
        self._producer = self._build()
        self._batch = _Batch(self._changelog)
        self._doubtful = False
        self.is_open = False

    def _build(self) -> Producer:
        settings = self._settings
        return Producer(
            {
                **settings.kafka,
                "bootstrap.servers": settings.bootstrap,
                "transactional.id": self._id,  # engine rule 5
                "transaction.timeout.ms": settings.transaction_timeout_ms,  # engine rule 6
                "message.timeout.ms": settings.message_timeout_ms,  # engine rule 6
                "message.max.bytes": message_bytes_max(),
                "acks": "all",  # engine rule 20
                "linger.ms": 0,  # a hop's latency is the goal; batches form while one is in flight
                "partitioner": "murmur2_random",
                "error_cb": self._noticed,
            },
            logger=_log,
        )

    def _noticed(self, error: KafkaError) -> None:
        """A connection was lost. librdkafka may go on asking a coordinator that it has given up
        (its issue 5511, open: the call then hangs), so the next transaction gets a new producer.
        """
        self._doubtful = True
        _log.info("producer %s: %s", self._id, error.str())

    def start(self) -> None:
        """Abort what this slot left open and take a new epoch; before any committed offset is
        read (engine rules 5, 9)."""
        self._call("init_transactions", self._producer.init_transactions)

    def restart(self) -> None:
        """A new producer in place of one whose id expired while idle (engine rule 14), or whose
        connections were lost."""
        self._producer = self._build()
        self._batch = _Batch(self._changelog)
        self.is_open = False
        self.start()
        self._doubtful = False

    def send(self, output: Output, cause: Cause) -> None:
        """Produce in the open transaction, which the first output begins (engine rule 14).

        A full queue is waited for, so nothing is lost or reordered (failure test 25). Raises
        TransactionAborted for a record that is too large to be sent at all.
        """
        self.begin()
        topic = self._names.get(output.topic)
        if topic is None:
            topic = self._names[output.topic] = full_name(self._settings.prefix, output.topic)
        report = self._batch.report_for(cause)
        partition = -1 if output.partition is None else output.partition
        while True:
            try:
                self._producer.produce(
                    topic,
                    value=output.value,
                    key=output.key,
                    partition=partition,
                    headers=list(output.headers),
                    on_delivery=report,
                )
                break
            except BufferError:
                self._producer.poll(_ROOM_S)
            except KafkaException as raised:
                raise self._meaning(raised, f"produce to {topic}", cause) from raised
        self._batch.sent += 1
        if self._batch.sent % _SERVE_EVERY == 0:
            self._producer.poll(0)

    def begin(self) -> None:
        """Open a transaction if none is open."""
        if not self.is_open:
            self._producer.poll(0)
            if self._doubtful:
                self.restart()
            self._batch = _Batch(self._changelog)
            self._call("begin_transaction", lambda _: self._producer.begin_transaction())
            self.is_open = True

    def send_offsets(self, offsets: list[TopicPartition], fence: bytes) -> None:
        """Add source positions; they carry the fence, so no transaction goes without (rule 2)."""
        invariant(bool(offsets), "engine rule 2: every transaction carries offsets")
        self._call(
            "send_offsets_to_transaction",
            lambda wait_s: self._producer.send_offsets_to_transaction(offsets, fence, wait_s),
        )

    def commit(self) -> dict[int, int]:
        """Commit; returns the next changelog offset of each partition that was written.

        An unknown outcome is only ever met with the same call again (engine rule 12).
        """
        self._call("commit_transaction", self._producer.commit_transaction)
        self.is_open = False
        batch = self._batch
        invariant(batch.reported == batch.sent, "a commit returns after every delivery report")
        invariant(not batch.problem, "a commit fails if a delivery failed")
        return batch.changelog_next

    def logged_at_ms(self, cause: Cause) -> int:
        """The log time of what the last committed transaction wrote for `cause`; only a producer
        without a changelog keeps it."""
        return self._batch.logged_at_ms[cause]

    def abort(self) -> None:
        """Abort if a transaction is open; raises TransactionFatal."""
        if self.is_open:
            self._call("abort_transaction", self._producer.abort_transaction)
            self.is_open = False

    def _call(self, name: str, call: Callable[[float], object]) -> None:
        """Make one call, again as long as its error is retriable (engine rule 10)."""
        wait_s = self._settings.commit_try_ms / 1_000
        with self._watchdog.guard(f"{name} of {self._id}", self._settings.broker_stuck_ms):
            while True:
                try:
                    call(wait_s)
                except KafkaException as raised:
                    error = raised.args[0]
                    if classify(error) is not Fault.RETRIABLE:
                        raise self._meaning(raised, name, None) from raised
                    _log.warning("%s of %s is repeated: %s", name, self._id, error.str())
                    self._producer.poll(_ROOM_S)
                else:
                    return

    def _meaning(
        self, raised: KafkaException, what: str, cause: Cause | None
    ) -> TransactionAborted | TransactionFatal:
        """What an error of any call asks for."""
        error: KafkaError = raised.args[0]
        if error.code() in _REFUSED and cause is not None:
            self._batch.refused.append(cause)
        elif classify(error) is not Fault.ABORTABLE:
            return TransactionFatal(error, self._id)
        told = f"{what} of {self._id}: {error.str()}"
        if self._batch.problem:
            told = f"{told} ({self._batch.problem})"
        refused = tuple(self._batch.refused)
        word = "output_refused" if refused else error.name().lower()
        return TransactionAborted(told, cause=word, refused=refused)
