"""The reader: `readback-requests` to a target to `readbacks`, at least once.

A read changes nothing, and the fold takes an answer only while its request is open, so repeating
one after a crash is harmless. Offsets follow finished reads, never overtake them.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable

from confluent_kafka import Message, TopicPartition

from connectors.capacity import Capacity
from connectors.contract_book import ContractBook
from connectors.dead_letters import dead_letter
from connectors.intake import Intake
from connectors.low_water import LowWater
from connectors.outbound import Outbound
from connectors.points import Point, Reach, pass_by
from connectors.settings import ConnectorSettings
from connectors.station import drain, take_until
from tallystick.codec import Codec
from tallystick.errors import UndecodableRecord
from tallystick.records import Readback, ReadbackRequest
from tallystick.topics import Topic

SETUP_CODE = "contract_unavailable"


class Reader:
    """One reader process: a thread takes requests, the event loop reads the targets."""

    def __init__(
        self,
        settings: ConnectorSettings,
        book: ContractBook,
        codec: Codec,
        reach: Reach = pass_by,
    ) -> None:
        self._settings = settings
        self._book = book
        self._codec = codec
        self._reach = reach
        self._capacity = Capacity(settings.in_flight_max)
        self._outbound = Outbound(
            settings.client_config, settings.prefix, codec, "tallystick/reader"
        )
        self._low_water = LowWater()
        self._lock = threading.Lock()
        self._tasks: set[asyncio.Task[None]] = set()
        self.intake = Intake(settings, Topic.READBACK_REQUESTS, "reader", self._forget)

    async def run(self, stop: asyncio.Event) -> None:
        """Read until `stop` is set; raises what ended the intake."""
        try:
            await take_until(stop, self.intake, self._take_forever)
        finally:
            await drain(self._tasks, self._settings.drain_s)
            await asyncio.to_thread(self._outbound.close, self._settings.drain_s)
            await asyncio.to_thread(self.intake.close, self._finished())
            await self._book.close()

    def _take_forever(self, loop: asyncio.AbstractEventLoop) -> None:
        for messages in self.intake.batches(self._capacity):
            self.intake.commit(self._finished())
            for message in messages:
                self._begin(message, loop)

    def _begin(self, message: Message, loop: asyncio.AbstractEventLoop) -> None:
        topic, partition, offset = _place(message)
        with self._lock:
            self._low_water.take(topic, partition, offset)
        try:
            request = self._codec.decode(
                Topic.READBACK_REQUESTS, message.value(), message.headers()
            )
        except UndecodableRecord as error:
            letter = dead_letter(self._codec, "reader", Topic.READBACK_REQUESTS, message, error)
            self._outbound.send_output(letter, lambda: self._done(topic, partition, offset))
            return
        if isinstance(request, ReadbackRequest):
            self._capacity.take(1)
            loop.call_soon_threadsafe(self._spawn, request, topic, partition, offset)

    def _spawn(self, request: ReadbackRequest, topic: str, partition: int, offset: int) -> None:
        task = asyncio.ensure_future(self._read(request, topic, partition, offset))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _read(
        self, request: ReadbackRequest, topic: str, partition: int, offset: int
    ) -> None:
        try:
            target = self._book.target(request.contract_hash)
            if target is None:
                answer = _no_contract(request, self._settings.slot)
            else:
                answer = await target.read(request)
            self._reach(Point.AFTER_READ)
            self._outbound.send(
                Topic.READBACKS,
                request.commit_key,
                partition,
                answer,
                f"{request.request_id}/{self._settings.slot}",
                lambda: self._done(topic, partition, offset),
            )
        finally:
            self._capacity.release()

    def _done(self, topic: str, partition: int, offset: int) -> None:
        with self._lock:
            self._low_water.finish(topic, partition, offset)

    def _finished(self) -> list[TopicPartition]:
        with self._lock:
            moved = self._low_water.advance()
        return [TopicPartition(topic, number, offset) for (topic, number), offset in moved.items()]

    def _forget(self, places: Iterable[TopicPartition]) -> None:
        with self._lock:
            for place in places:
                self._low_water.drop(place.topic, place.partition)


def _place(message: Message) -> tuple[str, int, int]:
    return message.topic() or "", message.partition() or 0, message.offset() or 0


def _no_contract(request: ReadbackRequest, reader: str) -> Readback:
    return Readback(
        request_id=request.request_id,
        commit_key=request.commit_key,
        plan_hash=request.plan_hash,
        found=(),
        unplanned=(),
        error=SETUP_CODE,
        detail=f"no reader here serves contract {request.contract_name} "
        f"with hash {request.contract_hash[:12]}",
        reader=reader,
        elapsed_ms=0,
    )
