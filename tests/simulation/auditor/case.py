"""What the auditor may look at: the log as everyone sees it, and what really happened."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar

from streams.settings import LoopSettings
from streams.source import LogRecord
from streams.stages import COMMITS
from tallystick.codec import Codec
from tallystick.records import (
    Attempt,
    AttemptPhase,
    FoundItem,
    KeyStyle,
    PartialSuccess,
    Readback,
    ReadbackKind,
    ReadbackRequest,
    Receipt,
    Record,
    ToolPolicy,
    Verification,
)
from tests.simulation.history import History, Looked
from tests.simulation.log import Log
from tests.simulation.people import Asked
from tests.simulation.world import World

R = TypeVar("R", bound=Record)
Ending = Receipt | PartialSuccess


@dataclass
class Case:
    """One world, after it has run."""

    history: History
    shown: list[tuple[int, LogRecord]]
    asked: list[Asked]
    holds: Callable[[str, str, int], tuple[str, ...]]
    log: Log
    settings: LoopSettings
    codec: Codec
    troubled: bool
    gaps: Counter[str] = field(default_factory=Counter)
    """Known limits of the protocol that were met (docs/simulator.md), by name: no violations."""

    def of(self, kind: type[R]) -> list[tuple[int, LogRecord, R]]:
        """Records of one kind: when they became visible, where they stand, what they say."""
        return [
            (at_ms, place, place.record)
            for at_ms, place in self.shown
            if isinstance(place.record, kind)
        ]

    def turn_of(self, output: LogRecord) -> int:
        """When the input was folded that `output` came of, counted in committed inputs."""
        cause = self.log.causes[output.topic, output.partition, output.offset]
        return self.turns.get((cause.topic, cause.partition, cause.offset), -1)

    def turn_in(self, record: LogRecord) -> int:
        """When this input was folded, or -1."""
        return self.turns.get((record.topic, record.partition, record.offset), -1)

    @cached_property
    def turns(self) -> dict[tuple[str, int, int], int]:
        """By place in the log: the turn in which the input was (at last) folded."""
        return {
            (*folded.place, folded.offset): turn for turn, folded in enumerate(self.log.consumed)
        }

    def overtaken(self, record: LogRecord) -> bool:
        """Whether a tick that was logged later was folded earlier: topics have no common order."""
        turn = self.turn_in(record)
        return any(at_ms > record.at_ms for at_ms in self._ticks_before(turn, record.partition))

    def _ticks_before(self, turn: int, partition: int) -> list[int]:
        offsets = {
            folded.offset
            for folded in self.log.consumed[: max(turn, 0)]
            if folded.place == (COMMITS.ticks, partition)
        }
        ticks = self.log.committed((COMMITS.ticks, partition))
        return [tick.at_ms for tick in ticks if tick.offset in offsets]

    def endings(self) -> list[tuple[int, LogRecord, Ending]]:
        """Receipts and partial records, in the order in which they became visible."""
        return [
            (at_ms, place, place.record)
            for at_ms, place in self.shown
            if isinstance(place.record, Receipt | PartialSuccess)
        ]

    def policy(self, tool: str) -> ToolPolicy:
        """What the contract says of a tool."""
        return self.history.policies[tool]

    def keyed(self, tool: str) -> bool:
        """Whether the same write may go out again: it takes a key, or is naturally idempotent."""
        return self.policy(tool).key_style is not KeyStyle.NONE

    def readable(self, tool: str) -> bool:
        """Whether anyone can look."""
        return self.policy(tool).readback is not ReadbackKind.NONE

    def asked_at(self, request_id: str) -> int:
        """When a read was asked for."""
        return min(p.at_ms for _, p, r in self.of(ReadbackRequest) if r.request_id == request_id)

    def called_at(self, intent_id: str) -> list[int]:
        """When the target was called."""
        return [sent.at_ms for sent in self.history.sent if sent.intent_id == intent_id]

    def claimed_at(self, intent_id: str) -> list[int]:
        """When a dispatcher logged that it was about to call."""
        return [
            place.at_ms
            for _, place, attempt in self.of(Attempt)
            if attempt.intent_id == intent_id and attempt.phase is AttemptPhase.STARTED
        ]

    def lied_about(self, intent_id: str, before_ms: int) -> bool:
        """Whether a person said something untrue about this effect."""
        return any(
            said.intent_id == intent_id and not said.true and said.at_ms <= before_ms
            for said in self.history.said
        )

    def looks(self) -> dict[str, Looked]:
        """By request id: the look behind the answer that stands first in the log."""
        answers: dict[str, Readback] = {}
        for _, _, answer in self.of(Readback):
            answers.setdefault(answer.request_id, answer)
        found: dict[str, Looked] = {}
        for look in self.history.looked:
            name = look.request.request_id
            if name not in found and look.answer == answers.get(name):
                found[name] = look
        return found

    def last_seen(self) -> dict[tuple[str, int], dict[tuple[str, str], tuple[Looked, FoundItem]]]:
        """By plan and round, by item: the last answered look that showed it."""
        looks = self.looks()
        seen: dict[tuple[str, int], dict[tuple[str, str], tuple[Looked, FoundItem]]] = {}
        for _, _, verification in self.of(Verification):
            look = looks.get(verification.request_id)
            if look is None:
                continue
            of_round = seen.setdefault((verification.plan_hash, verification.round), {})
            for item in look.answer.found:
                if not item.error:
                    of_round[item.tool, item.identity] = (look, item)
        return seen


def case_of(world: World) -> Case:
    """What a world left behind."""
    return Case(
        history=world.history,
        shown=world.shown,
        asked=world.people.asked,
        holds=world.target.holds,
        log=world.log,
        settings=world.settings,
        codec=world.log.codec,
        troubled=world.trouble.processes,
    )
