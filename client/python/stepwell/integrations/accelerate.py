"""Accelerate.

    from stepwell.integrations.accelerate import watch

    model, optimizer, loader, eval_loader, scheduler = accelerator.prepare(...)
    watch(accelerator, loader, eval_loader)

Accelerate knows of no training step: `train_batch` is from the first pass of a batch to the end of the optimizer's step,
and holds `forward`, `backward` and `optimizer_step`.

and for what is logged, `Accelerator(log_with=StepwellTracker())`: numbers of accelerator.log() become series.
"""

from __future__ import annotations

import operator
import sys
import weakref

from stepwell.integrations._ahead import watch_ahead
from stepwell.integrations._guard import guard_methods, guarded
from stepwell.integrations._training import Training, samples_of
from stepwell.integrations._watch import Watches, watch_call, watch_loader, watch_model, watch_result

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from stepwell._run import Run

_begun: weakref.WeakSet[Watched] = weakref.WeakSet()
_GATHERS = ("gather", "gather_for_metrics", "reduce")


@guard_methods
class Watched:
    """Made by watch(). A step is a batch of the loader."""

    def __init__(self, run: Run | None) -> None:
        self.training = Training(run)
        self._watches = Watches()
        self._loader: Any = None
        self._rest_epoch = -1  # of the last loop over the rest of an epoch
        self._epoch_offset = 0  # the loader counts none of those

    def begin(self, accelerator: Any, loader: Any, eval_loader: Any, batch: int | None) -> None:
        from accelerate import data_loader

        for before in [one for one in _begun if one._loader is loader]:
            before.end()  # as an exception left it: nobody has two of one training
        training, watches = self.training, self._watches
        self._loader, self._first_batch = loader, batch
        _begun.add(self)
        watches.add(watch_loader(loader, self._fetch_begins, self._fetch_ends, training.break_off))
        watch_ahead(loader, training, watches)
        if eval_loader is not None:
            watches.add(watch_loader(eval_loader, self._eval_fetch_begins,
                                     lambda _, found: training.eval_fetch_ends(found)))  # fmt: skip
        watches.add(watch_call(data_loader, "send_to_device", lambda *_, **__: training.transfer_begins(),
                               training.transfer_ends))  # fmt: skip
        watches.add(watch_call(accelerator, "backward", self._backward_begins, lambda: training.end("backward")))
        watches.add(watch_result(accelerator, "skip_first_batches", self._watch_rest))
        for name in _GATHERS:
            self._time(accelerator, name, "reduce_metrics")
        for optimizer in accelerator._optimizers:
            watches.add(watch_call(optimizer, "step", self._update_begins, self._update_ends))
        for scheduler in accelerator._schedulers:
            self._time(scheduler, "step", "step_lr_schedulers")
        for model in accelerator._models:
            watches.add(watch_model(model, self._forward_of(model), lambda: training.end("forward")))

    def end(self) -> None:
        """The training is over."""
        self.training.finish()
        self._watches.end()
        _begun.discard(self)

    def _time(self, owner: Any, name: str, timing: str) -> None:
        training = self.training
        self._watches.add(watch_call(owner, name, lambda *_, **__: training.begin(timing),
                                     lambda: training.end(timing)))  # fmt: skip

    def _forward_of(self, model: Any) -> Any:
        def begins(*_: Any, **__: Any) -> None:
            if getattr(model, "training", True):
                self._work_begins()
            self.training.begin("forward")

        return begins

    def _backward_begins(self, *_: Any, **__: Any) -> None:
        self._work_begins()  # of a model that was not prepared, or is called past its call
        self.training.begin("backward")

    def _work_begins(self) -> None:
        """One train_batch reaches to the end of an optimizer's step, also of one that was skipped, else to that of its batch."""
        training = self.training
        if training.has_batch and not training.is_in("train_batch") and _is_grad_enabled():
            training.begin("train_batch")

    def _update_begins(self, *_: Any, **__: Any) -> None:
        self._work_begins()  # of one that calls its passes itself, or a second one of the same batch
        self.training.begin("optimizer_step")

    def _update_ends(self) -> None:
        self.training.end("optimizer_step")
        self.training.end("train_batch")

    def _fetch_begins(self) -> None:
        epoch = _iteration(self._loader)
        if epoch + self._epoch_offset <= self._rest_epoch:
            self._epoch_offset = self._rest_epoch + 1 - epoch
        self._step_begins(epoch + self._epoch_offset, None)

    def _step_begins(self, epoch: int, batch_in_epoch: int | None) -> None:
        batch, self._first_batch = self._first_batch, None
        self.training.step_ends()
        self.training.fetch_begins(batch, epoch, batch_in_epoch)

    def _fetch_ends(self, item: Any, is_found: bool) -> None:
        self.training.fetch_ends(samples_of(item) if is_found else None, is_found)

    def _watch_rest(self, rest: Any, dataloader: Any = None, num_batches: int = 0) -> None:
        """Of an epoch that a training resumes in its middle: a loader of its own, in place of the one that was given."""
        if dataloader is not self._loader or rest is dataloader:
            return
        within = num_batches

        def anew() -> None:
            nonlocal within
            within = num_batches
            self.training.break_off()

        def fetch_begins() -> None:
            self._rest_epoch = max(_iteration(dataloader) + self._epoch_offset, _iteration(rest))
            self._step_begins(self._rest_epoch, within)

        def fetch_ends(item: Any, is_found: bool) -> None:
            nonlocal within
            within += 1
            self._fetch_ends(item, is_found)

        self._watches.add(watch_loader(rest, fetch_begins, fetch_ends, anew))
        watch_ahead(rest, self.training, self._watches)

    def _eval_fetch_begins(self) -> None:
        self.training.leave_between()
        self.training.eval_fetch_begins()


def _is_grad_enabled() -> bool:
    torch: Any = sys.modules.get("torch")
    return torch is None or bool(torch.is_grad_enabled())


def _iteration(loader: Any) -> int:
    """What the loader counts is the epoch, from its first on."""
    return max(0, int(getattr(loader, "iteration", 0)))


def watch(accelerator: Any, loader: Any, eval_loader: Any = None, *, run: Run | None = None,
          batch: int | None = None) -> Watched:  # fmt: skip
    """Times what was prepared: `loader` is the training's, `batch` the index of its next batch where it resumes."""
    watched = Watched(run)
    try:
        watched.begin(accelerator, loader, eval_loader, batch)
        return watched
    except BaseException:  # an interrupt: nobody else could end what is watched already
        watched.end()
        raise


def _batch_of(step: Any) -> int | None:
    """None where it is no index that a batch may have."""
    try:
        batch = operator.index(step)
    except Exception:  # theirs: a tensor of floats, say
        return None
    return batch if 0 <= batch < 2**31 else None


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
            batch = _batch_of(step)
            for name, value in values.items():
                if isinstance(value, (int, float)) or hasattr(value, "__float__"):
                    self._training.record(name, value, batch=batch)

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
        made = _make_tracker()
        made.__module__, made.__qualname__ = __name__, name
        globals()[name] = made
    return made
