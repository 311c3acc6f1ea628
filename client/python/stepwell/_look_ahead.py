"""LookAhead: whose fetches are whose, of a loader that fetches a batch ahead of the one that it hands out.

Accelerate's loaders do, to know which batch is the last: the first ask of theirs fetches two batches, each further one
that of the next, and the last finds the end. Pure, and of one thread.
"""

from __future__ import annotations


class LookAhead:
    """
    ahead.fetched(0.02)      # once for each that was fetched
    ahead.ended()            # there are no more than those and the one that is kept
    ahead.handed_out()       # seconds that the batch took which is handed out now, None = not known
    """

    def __init__(self) -> None:
        self._kept: float | None = None  # of the batch that is there, and was not handed out
        self._fetched: list[float] = []  # since then
        self.is_over = False
        self.is_within = False  # an ask of it, as core.call_within() says

    def fetched(self, seconds: float) -> None:
        self._fetched.append(seconds)

    def ended(self) -> None:
        self.is_over = True

    def handed_out(self) -> float | None:
        """With those that were fetched before it and skipped, as at a resume."""
        mine = [] if self._kept is None else [self._kept]
        mine += self._fetched
        is_ahead = bool(self._fetched) and not self.is_over
        self._kept = mine.pop() if is_ahead else None
        self._fetched = []
        return sum(mine) if mine else None

    def forget(self) -> None:
        """What was fetched meanwhile was not seen."""
        self._kept = None
        self._fetched = []
