"""Which batches are recorded: a plan of windows, or a function. Pure: it decides, and does nothing.

    schedule = Schedule(wait=10, warmup=2, active=3, repeat=2)
    schedule(Place(12))  # Action.ACTIVE

Per run the windows follow each other over all batches of a training, as torch.profiler's do; per epoch they begin
anew with each, as Composer's do, and the last batch of an epoch ends a window that it lies in. `repeat` is the number
of windows, 0 = without end.
"""

from __future__ import annotations

import enum

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_BATCH_MAX = 2**31 - 1
_PERS = ("run", "epoch")


class Action(enum.Enum):
    SKIP = "skip"  # nothing is recorded
    WARMUP = "warmup"  # recorded; a profiler that warms up throws its own part away
    ACTIVE = "active"  # recorded
    SAVE = "active_and_save"  # recorded, the last batch of its window

    @property
    def records(self) -> bool:
        return self is not Action.SKIP


# What others call them.
_NAMES = {
    "SKIP": Action.SKIP, "NONE": Action.SKIP, "WARMUP": Action.WARMUP, "ACTIVE": Action.ACTIVE, "RECORD": Action.ACTIVE,
    "SAVE": Action.SAVE, "ACTIVE_AND_SAVE": Action.SAVE, "RECORD_AND_SAVE": Action.SAVE,
}  # fmt: skip


class Place(int):
    """Where in a training a batch lies: its index, as a number, and more about it."""

    epoch: int
    batch_in_epoch: int
    length: int | None  # batches of the epoch, where that is known

    def __new__(cls, batch: int, epoch: int = 0, batch_in_epoch: int | None = None, length: int | None = None) -> Place:
        place = super().__new__(cls, batch)
        place.epoch = epoch
        place.batch_in_epoch = batch if batch_in_epoch is None else batch_in_epoch
        place.length = length
        return place

    @property
    def is_last(self) -> bool:
        """Of its epoch."""
        return self.length is not None and self.batch_in_epoch == self.length - 1


class Schedule:
    """Windows of batches. Equal where its numbers are."""

    __slots__ = ("active", "first_batch", "first_epoch", "per", "repeat", "skip_first", "wait", "warmup")
    active: int
    first_batch: int
    first_epoch: int
    per: str
    repeat: int
    skip_first: int
    wait: int
    warmup: int

    def __init__(
        self,
        *,
        skip_first: int = 0,
        wait: int = 0,
        warmup: int = 0,
        active: int,
        repeat: int = 0,
        per: str = "run",
        first_batch: int = 0,
        first_epoch: int = 0,
    ) -> None:
        given = {"skip_first": skip_first, "wait": wait, "warmup": warmup, "active": active, "repeat": repeat,
                 "first_batch": first_batch, "first_epoch": first_epoch}  # fmt: skip
        for field, value in given.items():
            self._set(field, _count(field, value))
        if per not in _PERS:
            raise ValueError(f"stepwell: schedule: per is {per!r}; allowed: {', '.join(_PERS)}")
        self._set("per", per)
        if per == "run" and active == 0:
            raise ValueError("stepwell: schedule: active is 0; allowed: 1 or more, of schedules per run")
        if self.window == 0 and repeat == 0:
            raise ValueError("stepwell: schedule: wait, warmup and active are 0, without end; "
                             "allowed: one of them is not")  # fmt: skip

    def _set(self, field: str, value: object) -> None:
        object.__setattr__(self, field, value)

    def __setattr__(self, field: str, value: object) -> None:
        raise AttributeError(f"stepwell: a schedule does not change; resumed() makes another ({field})")

    @property
    def window(self) -> int:
        """Its batches."""
        return self.wait + self.warmup + self.active

    def resumed(self, *, batch: int, epoch: int = 0) -> Schedule:
        """For a training that goes on there: windows count from this batch of the run, or of that epoch."""
        return Schedule(**{**self._numbers(), "first_batch": batch, "first_epoch": epoch})  # type: ignore[arg-type]

    def __call__(self, place: int) -> Action:
        here = place if isinstance(place, Place) else Place(place)
        batch = int(here)
        if self.per == "epoch":
            batch = here.batch_in_epoch
            if here.epoch < self.first_epoch:
                return Action.SKIP
        # An epoch that was resumed in its middle is shorter by what lay before; the next ones are whole.
        is_offset = self.per == "run" or here.epoch == self.first_epoch
        batch -= self.skip_first + (self.first_batch if is_offset else 0)
        window = self.window
        if batch < 0 or (self.repeat > 0 and batch >= window * self.repeat):
            return Action.SKIP
        within = batch % window
        if within < self.wait:
            return Action.SKIP
        if within < self.wait + self.warmup:
            return Action.WARMUP
        if within == window - 1 or (self.per == "epoch" and here.is_last):
            return Action.SAVE
        return Action.ACTIVE

    def _numbers(self) -> dict[str, object]:
        return {field: getattr(self, field) for field in self.__slots__}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Schedule) and self._numbers() == other._numbers()

    def __hash__(self) -> int:
        return hash(tuple(self._numbers().values()))

    def __repr__(self) -> str:
        return f"stepwell.schedule({', '.join(f'{key}={value!r}' for key, value in self._numbers().items())})"

    def __reduce__(self) -> tuple[object, tuple[dict[str, object]]]:
        return _made_again, (self._numbers(),)


def _made_again(numbers: dict[str, object]) -> Schedule:
    return Schedule(**numbers)  # type: ignore[arg-type]


def _count(field: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"stepwell: schedule: {field} is {value!r}; allowed: a number of batches")
    if not 0 <= value <= _BATCH_MAX:
        raise ValueError(f"stepwell: schedule: {field} is {value!r}; allowed: 0 ... {_BATCH_MAX}")
    return value


def checked(value: object) -> Callable[[Place], object] | None:
    """What init() takes as a schedule."""
    if value is None or (callable(value) and not isinstance(value, type)):
        return value
    allowed = "stepwell.schedule(...), or a function of a batch's index"
    raise TypeError(f"stepwell: schedule is {value!r}; allowed: {allowed}")


def action_of(said: object) -> Action:
    """Of what a function said: an Action, one of torch.profiler's or Composer's, or whether to record. ValueError for
    what is none of these."""
    if isinstance(said, Action):
        return said
    if isinstance(said, enum.Enum) and said.name in _NAMES:
        return _NAMES[said.name]
    if isinstance(said, bool):
        return Action.ACTIVE if said else Action.SKIP
    raise ValueError(f"stepwell: the schedule said {said!r}; allowed: True, False, or an action")
