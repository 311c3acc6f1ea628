"""Steps that a schedule switches: between them, so that each that is recorded is whole."""

from __future__ import annotations

import sys

from stepwell import _checks
from stepwell._load import core
from stepwell._schedule import Place, Schedule

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, TypeVar

    from stepwell._core import Steps
    from stepwell._run import Run

    _Batch = TypeVar("_Batch")


class Stepping:
    """The steps of a run, told of by calls. Of one thread.

    begin(place) before a batch is fetched, count(place) when it is there, leave() after the last.
    """

    def __init__(self, run: Run, loader: object = None) -> None:
        self._run = run
        self._loader = loader
        self._loop = core.Loop()
        self._is_begun = False
        self._is_part = False  # of another loop's step
        self._told: tuple[int, int] | None = None

    @property
    def run(self) -> Run:
        """Its own; once that is closed, the one that was opened since: a loop that has a step open goes on in that."""
        run = self._run
        if run._is_closed and self._is_begun:
            module = sys.modules.get("stepwell._run")
            opened: Run | None = None if module is None or module._is_exiting else module.open_run()
            if opened is not None:
                self._told = None
                self._run = run = opened
        return run

    @property
    def upcoming(self) -> int:
        return self._loop.upcoming()

    @property
    def behind_trained(self) -> int:
        """The number behind that of the last batch that was trained: what hooks saw may have trained nothing."""
        return self._loop.behind_trained()

    @property
    def is_part(self) -> bool:
        """Of another loop's step: these are no steps."""
        return self._is_part

    def fetching(self, is_begun: bool) -> None:
        """Of this thread; what hooks see meanwhile they leave alone. leave() ends it, too."""
        self._loop.fetching(is_begun)

    def fetch(self, items: Iterator[Any]) -> Any:
        """The next of them, timed."""
        return self._loop.fetch(items)

    def begin(self, place: Place) -> None:
        """The step that is open ends; that of this batch begins."""
        run = self.run
        if self._is_begun:
            self._is_part = not self._loop.next()
        else:
            self._begin()
        if self._is_part:
            return
        if not run._is_stepped:
            self._follow_alone()
        if not is_behind(place, run._schedule) and run._follow(place):
            self._begin()  # a step that recording is switched in is none

    def count(self, place: Place, epoch: int | None = None) -> None:
        """This is the batch of the step that is open."""
        self._loop.count(int(place))
        self.tell(epoch)

    def tell(self, epoch: int | None) -> None:
        """That of the step that is open, once. Another loop's step has that one's."""
        run = self._run
        if self._is_part:
            return
        if epoch is not None:
            run._epoch = epoch
        if epoch is not None and run._is_on and self._told != (epoch, run._window_count):
            self._told = (epoch, run._window_count)
            run.record("epoch", epoch)

    def tells_anew(self) -> None:
        """Its epoch: another one's was told since."""
        self._told = None

    def fails(self) -> None:
        """The fetch: its step is none, and has told no epoch."""
        self._told = None
        self.leave()

    def end_step(self) -> None:
        """The step that is open ends, before leave()."""
        if self._is_begun and not self._is_part:
            self._loop.next()

    def leave(self) -> None:
        """What comes after lies in no step."""
        self._loop.leave()
        self._is_begun = self._is_part = False

    def end_epoch(self) -> None:
        is_part = self._is_part  # whose end is no epoch's
        self.leave()
        schedule = self._run._schedule
        if not is_part and isinstance(schedule, Schedule) and schedule.per == "epoch" and self._run._is_on:
            self._run.off()

    def _begin(self) -> None:
        self._is_part = not self._loop.begin(self._loader)
        self._is_begun = True

    def _follow_alone(self) -> None:
        """It has steps: hooks follow the run's schedule no more."""
        run = self._run
        run._is_stepped = True
        if not run._is_closed and run is sys.modules["stepwell._run"]._run:  # else another's goes on, which may have one
            core.follow_schedule(False)


def is_behind(place: Place, schedule: object) -> bool:
    """The fetch that finds the end of an epoch begins no window."""
    return (place.length is not None and place.batch_in_epoch >= place.length
            and isinstance(schedule, Schedule) and schedule.per == "epoch")  # fmt: skip


def length_of(loader: Any) -> int | None:
    try:
        return len(loader)
    except Exception:  # theirs: a length that is asked for at a bad time
        return None


class LoopEpoch:
    """The epoch of a loop, for a schedule: as it is told, else the one after that of the loop before."""

    def __init__(self, told: int | None) -> None:
        self._known = told
        self._is_counted = False

    def of(self, run: Run) -> int:
        return run._next_epoch if self._known is None else self._known

    def begins(self, run: Run) -> None:
        """It has a batch. Again: changes nothing."""
        if not self._is_counted:
            self._known = self.of(run)
            run._next_epoch = self._known + 1
            self._is_counted = True


def planned(
    run: Run, checked: Steps[_Batch], loader: Any, start: int | None, epoch: int | None, batch_in_epoch: int
) -> Steps[_Batch]:
    """Of Run.steps with an epoch or a schedule; ValueError, TypeError for what is none."""
    within = _checks.number("batch_in_epoch", batch_in_epoch, 0, 2**31 - 1)
    steps: Any = PlannedSteps(run, checked, loader, start=start, epoch=_checks.number("epoch", epoch, 0, 2**31 - 1),
                              batch_in_epoch=within)  # fmt: skip
    return steps  # type: ignore[no-any-return]


class PlannedSteps:
    """As the extension's Steps, with an epoch or a schedule."""

    def __init__(self, run: Run, checked: Any, loader: Any, *, start: int | None, epoch: int | None,
                 batch_in_epoch: int | None) -> None:  # fmt: skip
        self._run = run
        self._checked = checked
        self._loader = loader
        self._begin = (start, batch_in_epoch or 0)
        self._epoch = epoch
        resume(run, start, epoch, batch_in_epoch or 0)

    def __iter__(self) -> Iterator[tuple[int, Any]]:
        return PlannedLoop(self._run, self._loader, self._epoch, self)

    def take_begin(self) -> tuple[int | None, int]:
        """Of the first loop that is asked; those that were made and never asked take none. A second one goes on."""
        begin, self._begin = self._begin, (None, 0)
        return begin

    def __len__(self) -> int:
        return len(self._checked)

    def __bool__(self) -> bool:
        return True


def resume(run: Run, start: int | None, epoch: int | None, batch_in_epoch: int) -> None:
    """Windows of a run that resumes count from where its first loop begins."""
    schedule = run._schedule
    if not isinstance(schedule, Schedule) or run._is_resumed:
        return
    run._is_resumed = True
    if schedule.first_batch or schedule.first_epoch:
        return  # it says so itself
    if schedule.per == "run" and start:
        run._schedule = schedule.resumed(batch=start)
    elif schedule.per == "epoch" and (epoch or batch_in_epoch):
        run._schedule = schedule.resumed(batch=batch_in_epoch, epoch=run._next_epoch if epoch is None else epoch)


class PlannedLoop:
    """One that is dropped is left by its `core.Loop`: a Ctrl-C in lines of a __del__ would be swallowed."""

    def __init__(self, run: Run, loader: Any, epoch: int | None, steps: PlannedSteps) -> None:
        self._stepping = Stepping(run, loader)
        self._items: Any = iter(loader)  # its errors are the training's to see
        self._steps: PlannedSteps | None = steps  # which says where to begin, until this is asked
        self._start: int | None = None
        self._epoch = epoch
        self._loop_epoch = LoopEpoch(epoch)
        self._batch_in_epoch = 0
        self._length = length_of(loader)

    def __iter__(self) -> PlannedLoop:
        return self

    def __next__(self) -> tuple[int, Any]:
        items = self._items
        if items is None:
            raise StopIteration
        if self._steps is not None:
            self._take_begin(self._steps)
        stepping = self._stepping
        batch = stepping.upcoming if self._start is None else self._start
        place = Place(batch, self._loop_epoch.of(stepping.run), self._batch_in_epoch, self._length)
        stepping.begin(place)
        if stepping.is_part:
            place = Place(stepping.upcoming if self._start is None else self._start)
        if place.length is None or place.batch_in_epoch < place.length:  # else the fetch finds its end
            stepping.tell(self._epoch)  # before the fetch, which is a part of it
        try:
            item = stepping.fetch(items)
        except StopIteration:
            self._items = None
            stepping.end_epoch()
            raise
        except BaseException:
            stepping.fails()  # it may have other batches
            raise
        if not stepping.is_part:
            self._loop_epoch.begins(stepping.run)
        stepping.count(place, self._epoch)
        self._start = None
        self._batch_in_epoch += 1
        return int(place), item

    def _take_begin(self, steps: PlannedSteps) -> None:
        self._steps = None
        self._start, self._batch_in_epoch = steps.take_begin()
        if self._length is not None:
            self._length += self._batch_in_epoch
