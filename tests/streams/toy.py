"""A trivial stage for tests of the loop: it counts and echoes, and obeys commands in the text.

Its counter shows a record that was folded twice; its echoes show one that was lost.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from processors.step import Emit, Step
from streams.topology import Stage
from tallystick.codec import Headers
from tallystick.errors import UndecodableRecord
from tallystick.records import DeadLetter, Tick
from tallystick.records.base import Record
from tallystick.topics import Topic

NOTES = Topic.RESOLUTIONS
MORE_NOTES = Topic.ATTEMPTS
TICKS = Topic.COMMITS_TICKS
ECHOES = Topic.RECEIPTS
LETTERS = Topic.DEAD_LETTERS
CHANGELOG = Topic.COMMITS_CHANGELOG


class Note(Record):
    """An input: `text` may hold a command, such as `poison` or `big:1000`."""

    note_id: str
    text: str = ""


class Echo(Record):
    """An output: the note, and how many this key has seen."""

    note_id: str
    text: str
    count: int
    at_ms: int


class Toy(msgspec.Struct, frozen=True, array_like=True):
    """A key's state; the text is a row of its own, so it changes at another rate."""

    count: int
    due_ms: int | None = None
    text: str = ""


class JsonCodec:
    """JSON of the toy's records by topic; the codec contract without Avro."""

    types: dict[str, type[Record]] = {  # noqa: RUF012 - never changed
        NOTES: Note,
        MORE_NOTES: Note,
        ECHOES: Echo,
        TICKS: Tick,
        LETTERS: DeadLetter,
    }

    def encode(self, topic: str, record: Record) -> tuple[bytes, list[tuple[str, bytes]]]:
        """See Codec."""
        return msgspec.json.encode(record), [("toy", b"1")]

    def decode(self, topic: str, value: bytes | None, headers: Headers | None) -> Record:
        """See Codec."""
        try:
            return msgspec.json.decode(value or b"", type=self.types[topic])
        except msgspec.MsgspecError as error:
            raise UndecodableRecord(str(error), where=topic) from error


Pause = Callable[[str], None]


def sleep_once(spec: str) -> None:
    """`SECONDS:FILE`: sleep, unless the file exists (it is made first), as a slow handler would."""
    seconds, _, path = spec.partition(":")
    if not Path(path).exists():
        Path(path).touch()
        time.sleep(float(seconds))


class ToyFold:
    """Commands: poison, big:N, timer:MS, wake-poison:MS, forget, spread:KEY, sleep:S:FILE, and
    ignore, which leaves a new key without state and emits nothing."""

    def __init__(self, pause: Pause = sleep_once) -> None:
        self._pause = pause

    def apply(self, key: str, state: Toy | None, record: Record, at_ms: int) -> Step[Toy]:
        """Count, echo, obey."""
        assert isinstance(record, Note)
        word, _, rest = record.text.partition(":")
        count = (state.count if state else 0) + 1
        due_ms = state.due_ms if state else None
        text = record.text
        match word:
            case "poison":
                raise ValueError(f"poisoned by {record.note_id}")
            case "big":
                text = "x" * int(rest)
            case "timer" | "wake-poison":
                due_ms = at_ms + int(rest)
            case "ignore":
                return Step(state)
            case "forget":
                return Step(None, (_echo(key, record.note_id, "forgot", count, at_ms),))
            case "sleep":
                self._pause(rest)
            case "spread":
                echo = _echo(rest, record.note_id, text, count, at_ms)
                return Step(Toy(count, due_ms, word), (spread(echo),))
            case _:
                pass
        return Step(Toy(count, due_ms, word), (_echo(key, record.note_id, text, count, at_ms),))

    def wake(self, key: str, state: Toy, at_ms: int) -> Step[Toy]:
        """Echo that the timer went off, once; a poisoned one raises."""
        if state.text == "wake-poison":
            raise ValueError(f"poisoned timer of {key}")
        after = Toy(state.count, None, state.text)
        return Step(after, (_echo(key, f"woke {key}", "woke", state.count, at_ms),))

    def due_ms(self, state: Toy) -> int | None:
        """When the timer goes off."""
        return state.due_ms

    def pack(self, state: Toy) -> tuple[bytes, ...]:
        """Two rows; the second may be empty."""
        return msgspec.msgpack.encode((state.count, state.due_ms)), state.text.encode()

    def unpack(self, rows: tuple[bytes, ...]) -> Toy:
        """The inverse."""
        count, due_ms = msgspec.msgpack.decode(rows[0], type=tuple[int, int | None])
        return Toy(count, due_ms, rows[1].decode())


def _echo(key: str, note_id: str, text: str, count: int, at_ms: int) -> Emit:
    return Emit(ECHOES, key, Echo(note_id=note_id, text=text, count=count, at_ms=at_ms))


def spread(emit: Emit) -> Emit:
    """The same emission, sent by its own key."""
    return Emit(emit.topic, emit.key, emit.record, spread=True)


def toy_stage(pause: Pause = sleep_once, *, two_inputs: bool = False) -> Stage:
    """The stage around the fold."""
    return Stage(
        name="toy",
        inputs=(NOTES, MORE_NOTES) if two_inputs else (NOTES,),
        ticks=TICKS,
        changelog=CHANGELOG,
        outputs=(ECHOES,),
        fold=ToyFold(pause),
    )
