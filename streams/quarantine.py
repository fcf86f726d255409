"""Which records cannot be processed, so that the next transaction buries instead of folding them.

Marks live in memory only: after a crash the record fails again, and there is still one letter,
because the letter and the offset are in one transaction. The loop never spins: every refusal
either marks a record, makes a letter smaller, narrows the batch, or stops the stage.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from streams.source import Cause, Flaw
from tallystick.errors import OperatorError


@dataclass(frozen=True, slots=True)
class Mark:
    """Why, and whether the letter still holds the record's whole value."""

    flaw: Flaw
    whole: bool = True


class Quarantine:
    """The marks of one loop."""

    def __init__(self) -> None:
        self._marks: dict[Cause, Mark] = {}
        self._alone = 0

    @property
    def alone(self) -> bool:
        """Whether records are processed one by one, to find out which of a batch is refused."""
        return self._alone > 0

    def mark_of(self, cause: Cause) -> Mark | None:
        """The mark of a record, or of a key's wake, if it has one."""
        return self._marks.get(cause)

    def blame(self, cause: Cause, flaw: Flaw) -> None:
        """A fold raised on it."""
        self._marks[cause] = Mark(flaw)

    def refuse(self, causes: Sequence[Cause], told: str, batch_units: int) -> None:
        """The broker refused outputs of `causes`, in a batch of `batch_units`.

        A refusal holds for all records that travelled together, so unless one cause is left the
        batch is repeated one by one. Raises OperatorError when even a letter is refused.
        """
        if len(causes) > 1:
            self._alone = batch_units
            return
        (cause,) = causes
        mark = self._marks.get(cause)
        if cause.offset < 0 or (mark is not None and not mark.whole):
            raise OperatorError(
                f"the broker refuses even the letter about {cause}: {told}",
                where="dead-letters",
                fix="raise max.message.bytes of the dead-letters topic, then start again",
            )
        if mark is None:
            self._marks[cause] = Mark(Flaw("output_refused", told))
        else:
            self._marks[cause] = Mark(mark.flaw, whole=False)

    def settle(self, buried: Iterable[Cause], units: int) -> None:
        """A transaction is committed: `buried` are done with."""
        for cause in buried:
            self._marks.pop(cause, None)
        self._alone = max(0, self._alone - units)
