"""Stepwell: what a training measures about itself, on its way to a master.

    import stepwell

    with stepwell.init(trial="resnet50-lr3") as run:
        for batch_index, batch in run.steps(loader):
            with run.scope("train_batch"):
                ...
            run.record("loss", loss)

docs/python.md has the rest.
"""

from __future__ import annotations

from stepwell._load import core
from stepwell._run import Run, init

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from os import PathLike
    from typing import Any

    from stepwell._schedule import Action, Place, Schedule
    from stepwell._torch_profiler import TorchProfiler

Scope = core.Scope
Series = core.Series
Steps = core.Steps
__version__: str = core.version



def schedule(
    *, skip_first: int = 0, wait: int = 0, warmup: int = 0, active: int, repeat: int = 0, per: str = "run",
    first_batch: int = 0, first_epoch: int = 0,
) -> Schedule:  # fmt: skip
    """Windows of batches that are recorded, for init(): `skip_first` batches once, then `repeat` times (0 = without
    end) `wait` that are not, `warmup` and `active` that are. `per` is "run" or "epoch"."""
    from stepwell._schedule import Schedule

    return Schedule(skip_first=skip_first, wait=wait, warmup=warmup, active=active, repeat=repeat, per=per,
                    first_batch=first_batch, first_epoch=first_epoch)  # fmt: skip


def torch_profiler(
    *, schedule: Callable[[Any], object] | None = None, directory: str | PathLike[str] | None = None, **options: Any
) -> TorchProfiler:
    """torch.profiler.profile, of which the master keeps what it saw: with a schedule of ours (that of the run where none
    is given), our scopes in it, and options of its own (`record_shapes`, `with_stack`, ...). Traces stay in `directory`
    (STEPWELL_TRACES); without one they go once they are stored. docs/profilers/pytorch.md has more."""
    from stepwell import _torch_profiler

    return _torch_profiler.made(schedule, directory, options)


def __getattr__(name: str) -> object:
    """Of schedules, which most imports do not need."""
    if name in ("Action", "Place", "Schedule"):
        from stepwell import _schedule

        return getattr(_schedule, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = ["Action", "Place", "Run", "Schedule", "Scope", "Series", "Steps", "__version__", "init", "schedule",
           "torch_profiler"]  # fmt: skip
