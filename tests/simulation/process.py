"""Processes of a simulated world: generators that stand still at named points, where the world
may delay, stop or kill them.

A task yields a `Point` (something may strike here), a `Nap` (wait for time, or for news), or a
`Call` (wait for an answer, which is sent back into it).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any

from tests.simulation.clock import Clock
from tests.simulation.dice import Dice
from tests.simulation.groups import Group
from tests.simulation.log import Fenced, Refused

SESSION_MS = 10_000
"""A member that is silent for so long is out of its group."""

CRASH, PAUSE, REFUSE = 0.01, 0.008, 0.01
"""Chance of each at every point, of a refusal at every commit. Higher: worlds that do nothing but
restart."""


@dataclass(frozen=True, slots=True)
class Point:
    """A named place in the code where a process may die or be stopped."""

    name: str


@dataclass(frozen=True, slots=True)
class Nap:
    """Nothing to do for so long (None: until there is news)."""

    ms: int | None


@dataclass(frozen=True, slots=True)
class Call:
    """Ask the world outside; `begin` gets what to do with the answer."""

    begin: Callable[[Callable[[Any], None]], None]


Task = Generator[Point | Nap | Call, Any, None]


class Crashed(Exception):
    """The process ends in the middle of a call that cannot yield."""


class Process(ABC):
    """One process in a slot; a crash ends all its tasks, a restart begins anew."""

    def __init__(self, role: str, slot: str, clock: Clock, dice: Dice, topics: set[str]) -> None:
        self.role = role
        self.slot = slot
        self.clock = clock
        self.dice = dice
        self.topics = topics
        self.life = 0
        self.alive = False
        self.retired = False
        self.replaced = False
        self.troubled = True
        self.stopped_until_ms = 0
        self.skew_ms = 0
        self.started_at_ms = 0
        self.member = ""
        self.generation = -1
        self.group: Group | None = None
        self.disturb: Callable[[], None] | None = None
        self._napping: dict[int, tuple[int, Task]] = {}
        self._naps = 0

    @abstractmethod
    def main(self) -> Task:
        """What the process does; each kind has its own."""

    def lost(self) -> None:  # noqa: B027 - most processes take nothing with them
        """Drop what a process that ends takes with it."""

    def start(self) -> None:
        """Begin, or begin again."""
        if self.retired or self.alive:
            return
        self.life += 1
        self.alive = True
        self.stopped_until_ms = 0
        self.started_at_ms = self.clock.now_ms
        self.spawn(self.main())

    def spawn(self, task: Task) -> None:
        """Run one more task in this process."""
        self._plan(task, 0, None)

    def news(self, topic: str) -> None:
        """A topic got records: whoever naps looks again."""
        if topic in self.topics:
            self.wake()

    def wake(self) -> None:
        """End all naps, after what a fetch takes."""
        for nap in list(self._napping):
            life, task = self._napping.pop(nap)
            if life == self.life:
                self._plan(task, self.dice.between("fetch", 0, 3), None)

    def join(self, group: Group) -> None:
        """Become a member."""
        if self.group is group and self.slot in group.members.values():
            raise Fenced(self.slot)  # FENCED_INSTANCE_ID: a younger process has this slot
        self.group = group
        self.member = group.join(self.slot)
        self.generation = group.generation

    @property
    def metadata(self) -> bytes:
        """The group membership as this process knows it."""
        group = self.group
        if group is None:
            return b""
        out = self.member not in group.members
        if out and self.dice.chance("knows", 0.5):
            return group.metadata("", -1)  # its heartbeat thread was told already
        return group.metadata(self.member, self.generation)

    def maybe_refuse(self, fault: str) -> None:
        """The broker may refuse what this process asks of it just now."""
        if self.troubled and self.dice.fault(fault, REFUSE):
            raise Refused("COORDINATOR_NOT_AVAILABLE")

    def crash(self) -> None:
        """End at once; back after a while. The group notices when the session times out."""
        if not self.alive:
            return
        self._end()
        self.clock.after(self.dice.between("restart", 20, 8_000), self.start)

    def leave(self) -> None:
        """End cleanly: the group learns of it at once."""
        group, member = self.group, self.member
        if self.alive:
            self._end()
        if group is not None:
            group.leave(member)

    def stop(self, pause_ms: int) -> None:
        """Stand still (SIGSTOP, a long pause of the machine): timers go on, nothing runs."""
        self.stopped_until_ms = self.clock.now_ms + pause_ms
        self._watch_session(pause_ms)

    def _end(self) -> None:
        self.alive = False
        self.life += 1
        self._napping.clear()
        self.lost()
        self._watch_session(SESSION_MS)
        self.group = None

    def _watch_session(self, silent_ms: int) -> None:
        group, member = self.group, self.member
        if group is not None and member and silent_ms >= SESSION_MS:
            self.clock.after(SESSION_MS, lambda: self._check_session(group, member))

    def _check_session(self, group: Group, member: str) -> None:
        same = self.alive and self.member == member
        if not same or self.stopped_until_ms > self.clock.now_ms:
            group.leave(member)

    def _plan(self, task: Task, pause_ms: int, answer: Any) -> None:
        life = self.life
        self.clock.after(pause_ms, lambda: self._step(life, task, answer))

    def _step(self, life: int, task: Task, answer: Any) -> None:
        if life != self.life or not self.alive:
            return
        if self.stopped_until_ms > self.clock.now_ms:
            pause_ms = self.stopped_until_ms - self.clock.now_ms
            self.clock.after(pause_ms, lambda: self._step(life, task, answer))
            return
        self.clock.skew_ms = self.skew_ms
        try:
            wish = task.send(answer)
        except StopIteration:
            return
        except Crashed:
            self.crash()
            return
        except Fenced:
            self.dice.faults[f"fenced_{self.role}"] += 1
            self.retired = self.replaced
            self.crash()
            return
        finally:
            self.clock.skew_ms = 0
        self._grant(task, wish)

    def _grant(self, task: Task, wish: Point | Nap | Call) -> None:
        if isinstance(wish, Point):
            self._pass(task, wish)
        elif isinstance(wish, Nap):
            self._nap(task, wish)
        else:
            life = self.life
            wish.begin(lambda answer: self._step(life, task, answer))

    def _pass(self, task: Task, point: Point) -> None:
        name = f"{self.role}.{point.name}"
        if not self.troubled:
            self._plan(task, self.dice.between("step", 0, 2), None)
            return
        if self.dice.fault(f"crash@{name}", CRASH):
            self.crash()
            return
        if self.dice.fault(f"stop@{name}", PAUSE):
            if self.disturb is not None:
                self.disturb()
            self.stop(self.dice.pick("stopped", (400, 1_600, 3_000, 9_000, 10_500, 11_500, 30_000)))
        self._plan(task, self.dice.between("step", 0, 2), None)

    def _nap(self, task: Task, nap: Nap) -> None:
        self._naps += 1
        number, life = self._naps, self.life
        self._napping[number] = (life, task)
        if nap.ms is not None:
            self.clock.after(nap.ms, lambda: self._rise(number, life, task))

    def _rise(self, number: int, life: int, task: Task) -> None:
        if life == self.life and self._napping.pop(number, None) is not None:
            self._step(life, task, None)
