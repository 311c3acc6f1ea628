"""Accelerate.

    from stepwell.integrations.accelerate import watch

    model, optimizer, loader, eval_loader, scheduler = accelerator.prepare(...)
    watch(accelerator, loader, eval_loader)

and for what is logged, `Accelerator(log_with=StepwellTracker())`: numbers of accelerator.log() become series.
"""

from __future__ import annotations

from stepwell.integrations._ahead import watch_ahead
from stepwell.integrations._guard import guard_methods, guarded
from stepwell.integrations._training import Training, samples_of
from stepwell.integrations._watch import Watches, watch_call, watch_loader, watch_model

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from stepwell._run import Run

_GATHERS = ("gather", "gather_for_metrics", "reduce")


@guard_methods
class Watched:
    """Made by watch(). A step is a batch of the loader."""

    def __init__(self, run: Run | None) -> None:
        self.training = Training(run)
        self._watches = Watches()
        self._loader: Any = None

    def begin(self, accelerator: Any, loader: Any, eval_loader: Any, batch: int | None) -> None:
        from accelerate import data_loader

        training, watches = self.training, self._watches
        self._loader, self._first_batch = loader, batch
        watches.add(watch_loader(loader, self._fetch_begins, self._fetch_ends, training.break_off))
        watch_ahead(loader, training, watches)
        if eval_loader is not None:
            watches.add(watch_loader(eval_loader, self._eval_fetch_begins,
                                     lambda _, found: training.eval_fetch_ends(found)))  # fmt: skip
        watches.add(watch_call(data_loader, "send_to_device", lambda *_, **__: training.transfer_begins(),
                               training.transfer_ends))  # fmt: skip
        self._time(accelerator, "backward", "backward")
        for name in _GATHERS:
            self._time(accelerator, name, "reduce_metrics")
        for optimizer in accelerator._optimizers:
            self._time(optimizer, "step", "optimizer_step")
        for scheduler in accelerator._schedulers:
            self._time(scheduler, "step", "step_lr_schedulers")
        for model in accelerator._models:
            watches.add(watch_model(model, lambda *_, **__: training.begin("forward"), lambda: training.end("forward")))

    def end(self) -> None:
        """The training is over."""
        self.training.finish()
        self._watches.end()

    def _time(self, owner: Any, name: str, timing: str) -> None:
        training = self.training
        self._watches.add(watch_call(owner, name, lambda *_, **__: training.begin(timing),
                                     lambda: training.end(timing)))  # fmt: skip

    def _fetch_begins(self) -> None:
        batch, self._first_batch = self._first_batch, None
        # What the loader counts is the epoch, from its first on.
        epoch = max(0, int(getattr(self._loader, "iteration", 0)))
        self.training.step_ends()
        self.training.fetch_begins(batch, epoch)

    def _fetch_ends(self, item: Any, is_found: bool) -> None:
        self.training.fetch_ends(samples_of(item) if is_found else None, is_found)

    def _eval_fetch_begins(self) -> None:
        self.training.leave_between()
        self.training.eval_fetch_begins()


def watch(accelerator: Any, loader: Any, eval_loader: Any = None, *, run: Run | None = None,
          batch: int | None = None) -> Watched:  # fmt: skip
    """Times what was prepared: `loader` is the training's, `batch` the index of its next batch where it resumes."""
    watched = Watched(run)
    watched.begin(accelerator, loader, eval_loader, batch)
    return watched


def _make_tracker() -> type:
    from accelerate.tracking import GeneralTracker

    class StepwellTracker(GeneralTracker):  # type: ignore[misc]
        """`run` is the one that is open, else a new one."""

        name = "stepwell"
        requires_logging_directory = False

        def __init__(self, run: Run | None = None, **_: Any) -> None:
            super().__init__()
            self._training = Training(run)

        @property
        def tracker(self) -> Any:
            return self._training.run

        def store_init_configuration(self, values: dict[str, Any]) -> None:
            pass  # a run's labels are given when it opens

        @guarded
        def log(self, values: dict[str, Any], step: int | None = None, **_: Any) -> None:
            for name, value in values.items():
                if isinstance(value, (int, float)) or hasattr(value, "__float__"):
                    self._training.record(name, value)

        @guarded
        def finish(self) -> None:
            self._training.finish()

    return StepwellTracker


def __getattr__(name: str) -> Any:
    """A class of Accelerate's, which is imported where it is asked for."""
    if name != "StepwellTracker":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    made = globals().get(name)
    if made is None:
        made = globals()[name] = _make_tracker()
        made.__module__, made.__qualname__ = __name__, name
    return made
