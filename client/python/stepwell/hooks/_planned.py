"""Planner: hooks switch a run by its schedule between two steps, as loops over `run.steps` do, where no loop of those and
no integration tells of its steps.
"""

from __future__ import annotations

import os
import sys

from stepwell._schedule import Place, Schedule
from stepwell._stepping import is_behind, length_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from stepwell._run import Run


def followed_run() -> Run | None:
    """The open one whose schedule is the hooks' to follow."""
    module = sys.modules.get("stepwell._run")
    run: Run | None = None if module is None else module._run
    if run is None or run._schedule is None or run._is_closed or run._is_stepped or run._pid != os.getpid():
        return None
    return run


class _Epoch:
    """A loop over a loader, from its first batch on."""

    def __init__(self, run: Run, number: int, length: int | None) -> None:
        self.run = run
        self.number = number
        self.length = length
        self.batch_count = 0


class Planner:
    """Of one thread. Each loop that has steps is an epoch."""

    def __init__(self) -> None:
        self._run: Run | None = None
        self._epoch_count = 0

    def switches_on(self, run: Run, epoch: Any, loader: Any, batch: int) -> tuple[Any, bool]:
        """Before `batch` is fetched: what to give as `epoch` for the loop's next one, None for its first; whether recording is
        on since now, so that the step that was begun is none. `loader` may have a length."""
        if self._run is not run:
            self._run, self._epoch_count = run, 0
        if epoch is None or epoch.run is not run:
            epoch = _Epoch(run, self._epoch_count, length_of(loader))
            self._epoch_count += 1
        place = Place(batch, epoch.number, epoch.batch_count, epoch.length)
        epoch.batch_count += 1
        return epoch, not is_behind(place, run._schedule) and run._follow(place)

    def ends(self, run: Run, epoch: Any) -> None:
        """The loop came to its end; one that had no batch is no epoch."""
        if epoch.batch_count == 1 and self._run is run and self._epoch_count == epoch.number + 1:
            self._epoch_count = epoch.number
        schedule = run._schedule
        if isinstance(schedule, Schedule) and schedule.per == "epoch" and run._is_on:
            run.off()
