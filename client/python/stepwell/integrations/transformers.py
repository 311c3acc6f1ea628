"""Hugging Face's Trainer.

    from stepwell.integrations.transformers import StepwellCallback, watch

    Trainer(..., callbacks=[StepwellCallback()])      # the training loop
    watched = watch(trainer)                          # and its evaluation, its prediction
    watched.end()                                     # which is left alone again

A step is one of the optimizer, as the Trainer counts them: with gradient accumulation it holds several fetches.
"""

from __future__ import annotations

import sys

from stepwell.integrations._ahead import watch_ahead
from stepwell.integrations._callbacks import watch_callbacks, watch_each
from stepwell.integrations._calls import watcher_begins, watcher_of
from stepwell.integrations._guard import guard_methods, guarded
from stepwell.integrations._training import Training, samples_of
from stepwell.integrations._watch import Watches, watch_call, watch_loader, watch_result

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from stepwell._run import Run


@guard_methods
class _Watcher:
    def __init__(self, run: Run | None) -> None:
        self.training = Training(run)
        self.watches = Watches()  # of a training
        self.around: _Watcher | None = None  # of the training that this one's is made within
        self._of_evaluation = Watches()
        self._of_one = Watches()  # evaluation
        self._state: Any = None
        self._has_fetch = False

    def anew(self) -> _Watcher:
        return type(self)(self.training._given_run)

    def train_begins(self, state: Any, loader: Any, scheduler: Any) -> None:
        self.watches.end()
        self._state, self._has_fetch = state, False
        training = self.training
        training.train_begins(self.watches, "train")
        if loader is not None:
            self.watch_batches(loader)
        trainer_module = sys.modules.get("transformers.trainer")
        if trainer_module is not None:  # an epoch that is resumed in its middle has a loader of its own
            self.watches.add(watch_result(trainer_module, "skip_first_batches",
                                          lambda rest, *_, **__: self.watch_batches(rest)))  # fmt: skip
            # What it gathers of all ranks by for what it logs.
            self.watches.add(watch_call(trainer_module, "nested_gather", self._reduction_begins, self._reduction_ends))
        if scheduler is not None:
            self.watches.add(watch_call(scheduler, "step", lambda *_, **__: training.begin("step_lr_schedulers"),
                                        lambda: training.end("step_lr_schedulers")))  # fmt: skip
        try:
            from accelerate import data_loader
        except ImportError:
            return
        self.watches.add(watch_call(data_loader, "send_to_device", lambda *_, **__: training.transfer_begins(),
                                    training.transfer_ends))  # fmt: skip

    def watch_batches(self, loader: Any) -> None:
        self.watches.add(watch_loader(loader, self.fetch_begins, self.fetch_ends))
        watch_ahead(loader, self.training, self.watches)

    def fetch_begins(self) -> None:
        state = self._state
        self._has_fetch = True
        self.training.fetch_begins(int(state.global_step), int(state.epoch or 0))

    def fetch_ends(self, item: Any, is_found: bool) -> None:
        self.training.fetch_ends(samples_of(item) if is_found else None, is_found)

    def step_begins(self, state: Any) -> None:
        self._state = state
        if not self._has_fetch:  # of a loader that cannot be watched
            self.training.fetch_begins(int(state.global_step), int(state.epoch or 0))
            self.training.fetch_unseen()
        self.training.begin("train_batch")

    def step_ends(self, control: Any) -> None:
        self.training.end("train_batch")
        self.training.step_ends()
        self._has_fetch = False
        # What comes next asks the evaluation's loader before anybody is told, or writes a checkpoint.
        if getattr(control, "should_evaluate", False) or getattr(control, "should_save", False):
            self.training.leave()

    def train_ends(self) -> None:
        self.training.finish()
        self.watches.end()

    def end(self) -> None:
        """The training is over, and evaluations are no longer timed."""
        self.train_ends()
        self._of_one.end()
        self._of_evaluation.end()

    def _evaluation_begins(self, *_: Any, **__: Any) -> None:
        self.training.evaluation_begins()
        self.training.leave()

    def _reduction_begins(self, *_: Any, **__: Any) -> None:
        self.training.begin("reduce_metrics")

    def _reduction_ends(self) -> None:
        self.training.end("reduce_metrics")

    def watch_evaluation(self, trainer: Any, kind: Any = None) -> None:
        """And its prediction, and the callbacks beside those of this class."""
        training, watches, of_one = self.training, self._of_evaluation, self._of_one

        def begins(*_: Any, **__: Any) -> None:
            self._evaluation_begins()
            if kind is not None:  # within a training they are watched already
                others = [one for one in trainer.callback_handler.callbacks if not isinstance(one, kind)]
                watch_each(others, kind.__base__, training, of_one)

        def watch_found(loader: Any, *_: Any, **__: Any) -> None:
            of_one.add(watch_loader(loader, training.eval_fetch_begins,
                                    lambda _, found: training.eval_fetch_ends(found)))  # fmt: skip

        for name, loader in (("evaluate", "get_eval_dataloader"), ("predict", "get_test_dataloader")):
            watches.add(watch_result(trainer, loader, watch_found))
            watches.add(watch_call(trainer, name, begins, of_one.end))
        watches.add(watch_call(trainer, "prediction_step", lambda *_, **__: training.begin("eval_batch"),
                               lambda: training.end("eval_batch")))  # fmt: skip
        # What an evaluation gathers of all ranks by: the Trainer keeps what its accelerator had, which is not watched for that.
        watches.add(watch_call(trainer, "gather_function", self._reduction_begins, self._reduction_ends))


def _make_callback() -> type:
    from transformers import TrainerCallback

    class StepwellCallback(TrainerCallback):  # type: ignore[misc]
        """`run` is the one that is open, else a new one."""

        def __init__(self, run: Run | None = None) -> None:
            self._stepwell = _Watcher(run)

        def on_train_begin(self, args: Any, state: Any, control: Any, **more: Any) -> None:
            watcher = watcher_begins(self, "train")
            watcher.train_begins(state, more.get("train_dataloader"), more.get("lr_scheduler"))
            watch_callbacks(self, TrainerCallback, watcher.training, watcher.watches)

        def on_step_begin(self, args: Any, state: Any, control: Any, **more: Any) -> None:
            watcher_of(self).step_begins(state)

        def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **more: Any) -> None:
            watcher_of(self).training.begin("optimizer_step")

        def on_optimizer_step(self, args: Any, state: Any, control: Any, **more: Any) -> None:
            watcher_of(self).training.end("train_batch")

        def on_step_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
            watcher_of(self).step_ends(control)

        def on_prediction_step(self, args: Any, state: Any, control: Any, **more: Any) -> None:
            watcher_of(self).training.leave()

        def on_epoch_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
            watcher_of(self).training.leave(is_epoch_over=True)

        def on_train_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
            watcher_of(self).train_ends()

    return StepwellCallback


def watch(trainer: Any, run: Run | None = None) -> _Watcher:
    """Adds the callback, unless it is there, and times the evaluation, too, until end() of what this hands out."""
    watched: _Watcher | None = _watch(trainer, run)
    return _Watcher(run) if watched is None else watched


@guarded
def _watch(trainer: Any, run: Run | None) -> _Watcher:
    kind = __getattr__("StepwellCallback")
    callback = next((one for one in trainer.callback_handler.callbacks if isinstance(one, kind)), None)
    if callback is None:
        callback = kind(run)
        trainer.add_callback(callback)
    watcher = watcher_of(callback)
    watcher.watch_evaluation(trainer, kind)
    return watcher  # type: ignore[no-any-return]


def __getattr__(name: str) -> Any:
    """A class of Transformers', which is imported where it is asked for."""
    if name != "StepwellCallback":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    made = globals().get(name)
    if made is None:
        made = _make_callback()
        made.__module__, made.__qualname__ = __name__, name
        globals()[name] = made
    return made
