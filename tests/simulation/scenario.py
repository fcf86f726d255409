"""What callers and people want in one world: drawn by seed, action by action, so that a failing
world can be run again without some of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tallystick.records import PartialSuccess, Plan, Receipt
from tests.simulation.people import Asked, make_plan, retitled, without_last

if TYPE_CHECKING:
    from tests.simulation.world import World

WITHIN_MS = (2_000, 8_000, 20_000, 60_000, 120_000)


class Scenario:
    """The actions of one world."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._dice = world.dice
        self._retries: dict[str, int] = {}
        self._changes = 0

    def begin(self) -> None:
        """Plan all first actions."""
        for number in range(self._dice.between("keys", 1, 3)):
            plan = self._plan(f"k{number}")
            self._foreign(plan)
            start_ms = self._dice.between("start", 0, 20_000)
            self._act("commit", start_ms, lambda plan=plan: self._ask(plan))
            if self._dice.chance("concurrent", 0.3):
                soon_ms = start_ms + self._dice.between("soon", 0, 4_000)
                self._act("concurrent", soon_ms, lambda plan=plan: self._ask(plan))
            if self._dice.chance("drift", 0.15):
                later_ms = start_ms + self._dice.between("later", 0, 30_000)
                self._act("drift", later_ms, lambda plan=plan: self._drift(plan))

    def _act(self, name: str, pause_ms: int, act: Callable[[], None]) -> None:
        """An action is named like a fault, so that shrinking can leave it out."""
        if self._dice.fault(f"act:{name}", 1.0):
            self._world.clock.after(pause_ms, act)

    def _plan(self, key: str) -> Plan:
        tools = [policy.tool for policy in self._world.policies]
        count = self._dice.between("items", 1, 4)
        wanted = {
            f"{key}-i{n}": (self._dice.pick("tool", tools), f"{key} {n}") for n in range(count)
        }
        return make_plan(key, wanted, self._world.policies)

    def _foreign(self, plan: Plan) -> None:
        """Somebody may have written an item before, rightly or not."""
        for item in plan.items:
            if self._dice.fault("foreign", 0.06):
                right = self._dice.chance("foreign_right", 0.6)
                content = item.payload if right else '{"title":"other"}'
                self._world.target.put_before(item.tool, item.identity, content)

    def _ask(self, plan: Plan, supersedes: str | None = None) -> None:
        within_ms = self._dice.pick("within", WITHIN_MS)
        self._world.people.submit(plan, within_ms, supersedes, self._after)

    def _drift(self, plan: Plan) -> None:
        self._ask(retitled(plan, "drifted", self._world.policies))

    def _after(self, asked: Asked) -> None:
        """What a caller does about an ending."""
        ending, plan = asked.ending, asked.request.plan
        if self._dice.calm or not isinstance(ending, PartialSuccess | Receipt):
            return
        tries = self._retries.get(plan.commit_key, 0)
        if tries >= 3:
            return
        self._retries[plan.commit_key] = tries + 1
        pause_ms = self._dice.pick("pause", (0, 400, 1_500, 60_000))
        if isinstance(ending, Receipt):
            if self._dice.chance("again_after_receipt", 0.15):
                self._act("again", pause_ms, lambda: self._ask(plan))
            elif self._dice.chance("supersede_receipt", 0.45):
                self._act("supersede", pause_ms, lambda: self._supersede(plan))
            return
        if self._dice.chance("resolve", 0.3):
            lying = self._world.lying
            self._act("resolve", pause_ms, lambda: self._world.people.resolve(ending, lying=lying))
        if self._dice.chance("retry", 0.5):
            self._act("retry", pause_ms, lambda: self._ask(plan))
        elif self._dice.chance("supersede", 0.5):
            self._act("supersede", pause_ms, lambda: self._supersede(plan))

    def _supersede(self, plan: Plan) -> None:
        policies = self._world.policies
        self._changes += 1
        if len(plan.items) > 1 and self._dice.chance("drop", 0.3):
            successor = without_last(plan, policies)
        else:
            successor = retitled(plan, f"changed {self._changes}", policies)
        self._ask(successor, supersedes=plan.plan_hash)
