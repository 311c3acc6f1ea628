"""Lightning: a Callback, and a Profiler.

    from stepwell.integrations.lightning import StepwellCallback

    Trainer(callbacks=[StepwellCallback()])

The callback sees what the trainer's profiler is told, whichever that is, for one of its own stands before that one while the
trainer is at work; `Trainer(profiler=StepwellProfiler())` sees the same. Both know the batch and the epoch of a training that resumes, too.
"""

from __future__ import annotations

import contextlib
import time

from stepwell.integrations._calls import watcher_begins, watcher_of
from stepwell.integrations._guard import guard_methods
from stepwell.integrations._training import Training, samples_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from stepwell._run import Run

# What Lightning says, without the class that it says it of -> what it is here.
_SCOPES = {
    "run_training_batch": "train_batch", "batch_to_device": "to_device", "training_step": "forward",
    "backward": "backward", "optimizer_step": "optimizer_step", "lr_scheduler_step": "step_lr_schedulers",
    "validation_step": "eval_batch", "test_step": "eval_batch",
}  # fmt: skip
_NAMES = ("lightning.pytorch", "pytorch_lightning")
_EVAL_FETCHES = ("val_next", "test_next", "predict_next")


@guard_methods
class Actions:
    """What Trainer.profiler is told, as timings of a training. `where` says the next batch, its epoch, its index in
    that and the epoch's length; None = not known."""

    def __init__(self, run: Run | None = None) -> None:
        self.training = Training(run)
        self.where: Any = None
        self.around: Actions | None = None  # of the training that this one's is made within
        self._begun: dict[str, float] = {}
        self._epoch = -1
        self._is_failed = False
        self._counter: Any = None  # beside the trainer's callbacks
        self._trainer: Any = None

    def begin(self, stage: str, module: Any) -> None:
        """Of the profiler: the trainer has told it of its module. What is not known of a batch is its callback's to tell."""
        self.finish()
        self.training.train_begins() if stage == "fit" else self.training.evaluation_begins()
        trainer = getattr(module, "_trainer", None)
        if trainer is None or any(isinstance(one, _find("StepwellCallback")) for one in trainer.callbacks):
            return
        self._counter = _make_counter(self)
        self._trainer, self.where = trainer, lambda: _where(trainer)
        trainer.callbacks = [*trainer.callbacks, self._counter]

    def finish(self) -> None:
        self.training.finish()
        trainer = self._trainer
        if trainer is not None:
            self.where = None
            # Another list: they may be called by turns of this one just now.
            trainer.callbacks = [one for one in trainer.callbacks if one is not self._counter]
            self._trainer = None  # last: an interrupt leaves it to be done again

    train_ends = finish

    def anew(self) -> Actions:
        return type(self)(self.training._given_run)

    def __reduce__(self) -> Any:
        """A copy, as of a trainer that is spawned, has told nothing yet."""
        return type(self), (self.training._given_run,)

    def fail(self, action: str) -> None:
        """A batch that raises is no step."""
        self._is_failed = action == "run_training_batch"

    def start(self, action: str) -> None:
        kind, name, owner = _parts(action)
        if name == "train_dataloader_next":
            found = self.where() if self.where is not None else {"epoch": max(self._epoch, 0)}
            self.training.fetch_begins(**found)
        elif name in _EVAL_FETCHES:
            self.training.leave()
            self.training.eval_fetch_begins()
        elif name == "run_training_epoch":
            self._epoch += 1
            self._begun[action] = time.perf_counter()
        elif kind == "Callback":
            self._begun[action] = time.perf_counter()
        elif _is_scope(kind, name):
            self.training.begin(_SCOPES[name])

    def stop(self, action: str) -> None:
        kind, name, owner = _parts(action)
        if name == "train_dataloader_next":
            self.training.fetch_ends()
        elif name in _EVAL_FETCHES:
            self.training.eval_fetch_ends()
        elif kind == "Callback":
            begin_s = self._begun.pop(action, None)
            if begin_s is not None and not owner.startswith("Stepwell"):
                self.training.took(f"callback/{owner}/{name}", time.perf_counter() - begin_s)
        elif name == "run_training_epoch":
            self.training.leave(is_epoch_over=True)
            begin_s = self._begun.pop(action, None)
            if begin_s is not None:
                self.training.took("event/epoch", time.perf_counter() - begin_s, group="lightning")
        elif _is_scope(kind, name):
            self.training.end(_SCOPES[name])
            if name == "run_training_batch" and not self._is_failed:
                self.training.step_ends()
            self._is_failed = False


def _parts(action: str) -> tuple[str, str, str]:
    """[Strategy]SingleDeviceStrategy.training_step -> Strategy, training_step, SingleDeviceStrategy. A callback's class
    stands before what tells it from others of its class."""
    kind, bracket, rest = action[1:].partition("]") if action.startswith("[") else ("", "", action)
    owner, _, name = rest.rpartition(".")
    return kind, name, owner.partition("{")[0].strip() or kind


def _is_scope(kind: str, name: str) -> bool:
    """Hooks of a model are those of its strategy once more, but for two."""
    if name not in _SCOPES:
        return False
    if name in ("optimizer_step", "lr_scheduler_step"):
        return kind == "LightningModule"
    return kind in ("", "Strategy")


def _packages() -> list[Any]:
    """Those of its two names that the program has imported, for either may train; where it has none, the one that there is."""
    import importlib
    import sys

    imported = [name for name in _NAMES if name in sys.modules]
    try:
        return [importlib.import_module(name) for name in imported or _NAMES[:1]]
    except ModuleNotFoundError:
        return [importlib.import_module(_NAMES[1])]


def _make_profiler() -> type:
    bases = [package.profilers.Profiler for package in _packages()]

    class StepwellProfiler(*bases):  # type: ignore[misc]
        """`then` is another profiler, which is told all of it, too."""

        _is_callbacks = False  # which takes it away again

        def __init__(self, run: Run | None = None, then: Any = None) -> None:
            super().__init__()
            self._stepwell = Actions(run)
            self._then = then

        def start(self, action_name: str) -> None:
            if self._then is not None:
                self._then.start(action_name)
            watcher_of(self).start(action_name)

        def stop(self, action_name: str) -> None:
            watcher_of(self).stop(action_name)
            if self._then is not None:
                self._then.stop(action_name)

        @contextlib.contextmanager
        def profile(self, action_name: str) -> Iterator[str]:
            self.start(action_name)
            try:
                yield action_name
            except BaseException:
                watcher_of(self).fail(action_name)
                raise
            finally:
                self.stop(action_name)

        def setup(self, stage: str, local_rank: int | None = None, log_dir: str | None = None) -> None:
            super().setup(stage, local_rank, log_dir)
            actions = watcher_begins(self) if stage == "fit" else watcher_of(self)
            actions.begin(stage, getattr(self, "_lightning_module", None))
            if self._then is not None:
                self._then._lightning_module = getattr(self, "_lightning_module", None)
                self._then.setup(stage, local_rank, log_dir)

        def teardown(self, stage: str | None) -> None:
            """No trainer's: Lightning's own are torn down by describe()."""
            super().teardown(stage)
            watcher_of(self).finish()
            if self._then is not None:
                self._then.teardown(stage)

        # Lightning's tears down, and with it `then`: that has its own, and may be the trainer's again, with its report still to
        # come. This one of C's does nothing, and has no lines: an interrupt in those of a __del__ would be swallowed.
        __del__ = object.__hash__

        def describe(self) -> None:
            """The last that a trainer tells, after the callbacks' teardown."""
            watcher_of(self).finish()
            if self._then is not None:
                self._then.describe()

        def summary(self) -> str:
            return str(self._then.summary()) if self._then is not None else ""

        def __getattr__(self, name: str) -> Any:
            """Those of others have more, which their callers know."""
            then = self.__dict__.get("_then")
            if then is None:
                raise AttributeError(name)
            return getattr(then, name)

    return StepwellProfiler


@guard_methods
class _Callback:
    """What the callback does, beside its class's."""

    def install(self, trainer: Any, run: Run | None, stage: str) -> None:
        profiler = trainer.profiler
        kind = _find("StepwellProfiler")
        if not isinstance(profiler, kind):
            profiler = kind(run, then=profiler)
            profiler._is_callbacks = True
            trainer.profiler = profiler
        actions = watcher_of(profiler)
        training = actions.training
        training.train_begins() if stage == "fit" else training.evaluation_begins()
        actions.where = lambda: _where(trainer)

    def actions(self, trainer: Any) -> Any:
        """This trainer's, for the callback may be another one's, too; None where it has none."""
        profiler = trainer.profiler
        return watcher_of(profiler) if isinstance(profiler, _find("StepwellProfiler")) else None

    def samples(self, trainer: Any, batch: Any) -> None:
        actions = self.actions(trainer)
        if actions is not None:
            actions.training.add_samples(samples_of(batch))

    def leave(self, trainer: Any) -> None:
        actions = self.actions(trainer)
        if actions is not None:
            actions.training.leave()

    def finish(self, trainer: Any) -> None:
        actions = self.actions(trainer)
        if actions is None:
            return
        actions.training.finish()
        if trainer.profiler._is_callbacks:
            trainer.profiler = trainer.profiler._then


def _where(trainer: Any) -> dict[str, Any]:
    loop = trainer.fit_loop.epoch_loop
    length = trainer.num_training_batches
    return {"batch": loop.total_batch_idx + 1, "epoch": trainer.current_epoch, "batch_in_epoch": loop.batch_idx + 1,
            "length": int(length) if length != float("inf") else None}  # fmt: skip


def _make_counter(actions: Actions) -> Any:
    """What the profiler is not told: the batch."""

    bases = [package.Callback for package in _packages()]

    class StepwellCounter(*bases):  # type: ignore[misc]
        def on_train_batch_start(self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int) -> None:
            actions.training.add_samples(samples_of(batch))

        def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
            actions.finish()

        def teardown(self, trainer: Any, pl_module: Any, stage: str) -> None:
            actions.finish()

    return StepwellCounter()


def _make_callback() -> type:
    bases = [package.Callback for package in _packages()]

    class StepwellCallback(*bases):  # type: ignore[misc]
        def __init__(self, run: Run | None = None) -> None:
            self._run = run
            self._stepwell = _Callback()

        def setup(self, trainer: Any, pl_module: Any, stage: str) -> None:
            self._stepwell.install(trainer, self._run, stage)

        def on_train_batch_start(self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int) -> None:
            self._stepwell.samples(trainer, batch)

        def on_validation_start(self, trainer: Any, pl_module: Any) -> None:
            self._stepwell.leave(trainer)

        def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
            self._stepwell.finish(trainer)

        def teardown(self, trainer: Any, pl_module: Any, stage: str) -> None:
            self._stepwell.finish(trainer)

    return StepwellCallback


_MAKERS = {"StepwellProfiler": _make_profiler, "StepwellCallback": _make_callback}


def _find(name: str) -> Any:
    made = globals().get(name)
    if made is None:
        made = _MAKERS[name]()
        made.__module__, made.__qualname__ = __name__, name
        globals()[name] = made
    return made


def __getattr__(name: str) -> Any:
    """Classes of Lightning's, which is imported where they are asked for."""
    if name in _MAKERS:
        return _find(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
