"""DeepSpeed.

    from stepwell.integrations.deepspeed import watch

    engine, optimizer, loader, scheduler = deepspeed.initialize(...)
    watch(engine, loader)

Of each batch of the loader: `dataloader_next`, and in `train_batch`, from the model's call to the end of engine.step(),
`forward`, `backward` and `optimizer_step` with `step_lr_schedulers` in it. What the engine tells its monitors (the
loss, the learning rate, its own times) becomes series of the group `deepspeed`, where the training enabled one.
"""

from __future__ import annotations

from stepwell import _checks
from stepwell.integrations._guard import guard_methods
from stepwell.integrations._training import Training, samples_of
from stepwell.integrations._watch import Watches, watch_call, watch_loader, watch_model

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from stepwell._core import Series
    from stepwell._run import Run


@guard_methods
class Watched:
    """Made by watch()."""

    def __init__(self, run: Run | None, epoch: int = 0) -> None:
        self.training = Training(run)
        self._watches = Watches()
        self._engine: Any = None
        self._series: dict[str, Series] = {}
        self._first_epoch = epoch
        self._epoch = epoch - 1  # each iteration of the loader that is begun is one
        self._is_anew = True
        self._batches_before: int | None = None  # of a training that resumes; None = none was asked for yet
        self._updates_before = 0  # of the optimizer, when a checkpoint begins to be loaded

    def begin(self, engine: Any, loader: Any, eval_loader: Any) -> None:
        self._engine = engine
        training, watches = self.training, self._watches
        if loader is None:
            loader = getattr(engine, "training_dataloader", None)
        if loader is not None:
            watches.add(watch_loader(loader, self._fetch_begins, self._fetch_ends, self._iteration_begins))
        if eval_loader is not None:
            watches.add(watch_loader(eval_loader, self._eval_fetch_begins,
                                     lambda _, found: training.eval_fetch_ends(found)))  # fmt: skip
        watches.add(watch_model(engine, self._forward_begins, lambda: training.end("forward")))
        watches.add(watch_call(engine, "backward", lambda *_, **__: training.begin("backward"),
                               lambda: training.end("backward")))  # fmt: skip
        watches.add(watch_call(engine, "step", lambda *_, **__: training.begin("optimizer_step"), self._step_ends))
        watches.add(watch_call(engine, "load_checkpoint", self._load_begins, self._load_ends))
        scheduler = getattr(engine, "lr_scheduler", None)
        if scheduler is not None:
            watches.add(watch_call(scheduler, "step", lambda *_, **__: training.begin("step_lr_schedulers"),
                                   lambda: training.end("step_lr_schedulers")))  # fmt: skip
        monitor = getattr(engine, "monitor", None)
        # Never enabled by us: for a monitor the engine fetches the loss from the device at each step.
        if getattr(monitor, "enabled", False):
            watches.add(watch_call(monitor, "write_events", self._record_events, lambda: None))

    def end(self) -> None:
        """The training is over."""
        self.training.finish()
        self._watches.end()

    def _iteration_begins(self) -> None:
        self.training.break_off()
        self._is_anew = True

    def _fetch_begins(self) -> None:
        if self._is_anew:  # not one that was made and asked for nothing
            self._epoch, self._is_anew = self._epoch + 1, False
        self.training.step_ends()
        if self._batches_before is None:
            self._batches_before = _batches_before(self._engine)
        batch = self._batches_before + int(getattr(self._engine, "micro_steps", 0))
        self.training.fetch_begins(batch, max(self._first_epoch, self._epoch))

    def _load_begins(self, /, *_: Any, **__: Any) -> None:
        self._updates_before = int(getattr(self._engine, "global_steps", 0))

    def _load_ends(self) -> None:
        """Of an engine that was stepped before, too, as one that goes back to its best: it counts its batches on."""
        if int(getattr(self._engine, "global_steps", 0)) != self._updates_before:
            self._batches_before = _batches_of(self._engine) - int(getattr(self._engine, "micro_steps", 0))

    def _fetch_ends(self, item: Any, is_found: bool) -> None:
        self.training.fetch_ends(samples_of(item) if is_found else None, is_found)

    def _eval_fetch_begins(self) -> None:
        self.training.leave_between()
        self.training.eval_fetch_begins()

    def _forward_begins(self, /, *_: Any, **__: Any) -> None:
        model = getattr(self._engine, "module", self._engine)  # the engine itself is not told of eval()
        # A loss of several passes, as of two views, is one training step's.
        if getattr(model, "training", True) and not self.training.is_in("train_batch"):
            self.training.begin("train_batch")
        self.training.begin("forward")

    def _step_ends(self) -> None:
        self.training.end("train_batch")

    def _record_events(self, events: Any, /, *_: Any, **__: Any) -> None:
        for name, value, *_rest in events:
            series = self._series.get(name)
            if series is None:
                series = self._series[name] = self.training.run.series(name, group="deepspeed")
            series.record(value)


def _batches_before(engine: Any) -> int:
    """Those that an engine was trained with before its checkpoint, where it was not stepped since."""
    return 0 if int(getattr(engine, "micro_steps", 0)) > 0 else _batches_of(engine)


def _batches_of(engine: Any) -> int:
    """A checkpoint tells how often the optimizer stepped: what the engine counts its batches in begins anew."""
    is_managed = getattr(engine, "managed_gradient_accumulation", lambda: True)()
    per_step = getattr(engine, "gradient_accumulation_steps", int)() if is_managed else 1
    return int(getattr(engine, "global_steps", 0)) * max(1, int(per_step or 1))


def watch(engine: Any, loader: Any = None, eval_loader: Any = None, *, run: Run | None = None, epoch: int = 0) -> Watched:
    """Times what the engine does; without `loader` that of its own, which deepspeed.initialize() made. `epoch` is the one
    that a training which resumes begins with."""
    watched = Watched(run, _checks.number("epoch", epoch, 0, 2**31 - 1) or 0)
    try:
        watched.begin(engine, loader, eval_loader)
        return watched
    except BaseException:  # an interrupt: nobody else could end what is watched already
        watched.end()
        raise
