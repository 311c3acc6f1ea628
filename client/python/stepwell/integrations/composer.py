"""Composer.

    from stepwell.integrations.composer import StepwellCallback

    Trainer(callbacks=[StepwellCallback(), ...])

Of a step: `dataloader_next` (the loader's next() alone, not the ranks' agreement after it), `train_batch` with
`to_device`, `forward`, `loss` and `backward` in it, `step_lr_schedulers`. Each pair of trainer events is a timing
of the group `composer`: `event/fit`, `event/epoch`, `event/eval`, ...; those without another, `init` and the checkpoints',
are moments (`run.instant`). Each call of a callback and of an algorithm one of the
group `timing`: `callback/CheckpointSaver/batch_end`, `algorithm/LabelSmoothing/before_loss`. Of `init` those of callbacks
that stand behind this one: nobody tells of an event before.
"""

from __future__ import annotations

import time

from stepwell.integrations._guard import guard_methods
from stepwell.integrations._training import Training
from stepwell.integrations._watch import Watches, watch_call, watch_loader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from stepwell._run import Run

# The pairs of events that are scopes of a step, by the name without before_ and after_.
_SCOPES = {"train_batch": "train_batch", "forward": "forward", "loss": "loss", "backward": "backward",
           "eval_batch": "eval_batch", "eval_forward": "forward", "predict_batch": "predict_batch",
           "predict_forward": "forward"}  # fmt: skip


@guard_methods
class _Watcher:
    def __init__(self, run: Run | None) -> None:
        self.training = Training(run)
        self._watches = Watches()
        self._of_evaluation = Watches()
        self._begun: dict[str, float] = {}
        self._watched: set[int] = set()
        self._samples = 0
        self._state: Any = None

    def __reduce__(self) -> Any:
        """A copy has told nothing yet."""
        return type(self), (self.training._given_run,)

    def on_event(self, event: Any, state: Any) -> None:
        self._state = state
        name = event.canonical_name
        if event.is_after_event:
            self._ends(name)
        elif not event.is_before_event:
            self.training.run.instant(event.value)
        handler = getattr(self, f"_on_{event.value}", None)
        if handler is not None:
            handler(state)
        if event.is_before_event:
            self._begins(name)

    # --- pairs ---

    def _begins(self, name: str) -> None:
        self._begun[name] = time.perf_counter()
        if name in _SCOPES:
            self.training.begin(_SCOPES[name])

    def _ends(self, name: str) -> None:
        if name in _SCOPES:
            self.training.end(_SCOPES[name])
        begin_s = self._begun.pop(name, None)
        if begin_s is not None:
            self.training.took(f"event/{name}", time.perf_counter() - begin_s, group="composer")

    # --- what a step consists of ---

    def _on_init(self, state: Any) -> None:
        self._watch(state)

    def _on_fit_start(self, state: Any) -> None:
        self.training.train_begins()
        self._begun.clear()
        self._samples = int(state.timestamp.sample)
        self._watch(state)
        self._watch_train(state)

    def _on_epoch_start(self, state: Any) -> None:
        self._watch(state)
        self._watch_train(state)

    def _on_batch_end(self, state: Any) -> None:
        samples = int(state.timestamp.sample)
        self.training.add_samples(samples - self._samples)
        self._samples = samples
        self.training.step_ends()

    # --- evaluations, also those that no training lies around ---

    def _on_eval_before_all(self, state: Any) -> None:
        self.training.leave()

    def _on_eval_standalone_start(self, state: Any) -> None:
        self._watch(state)
        self.training.leave_between()

    def _on_eval_start(self, state: Any) -> None:
        self._watch_eval(state.dataloader)

    def _on_eval_end(self, state: Any) -> None:
        self._of_evaluation.end()

    def _on_predict_start(self, state: Any) -> None:
        self._watch(state)
        self.training.leave_between()
        self._watch_eval(state.dataloader)

    def _on_predict_end(self, state: Any) -> None:
        self._of_evaluation.end()

    def _on_epoch_end(self, state: Any) -> None:
        self.training.leave(is_epoch_over=True)

    def _on_fit_end(self, state: Any) -> None:
        self.training.leave()

    def close(self) -> None:
        self.training.finish()
        self._of_evaluation.end()
        self._watches.end()
        self._watched.clear()

    # --- what is watched ---

    def _watch(self, state: Any) -> None:
        for callback in state.callbacks:
            if type(callback).__name__ != "StepwellCallback":
                self._once(callback, lambda it: self._time_events(it, "run_event", "callback", 0))
        for algorithm in state.algorithms:
            self._once(algorithm, lambda it: self._time_events(it, "apply", "algorithm", 0))
        for scheduler in state.schedulers:
            self._once(scheduler, lambda it: self._time(it, "step", "step_lr_schedulers"))
        self._once(state.device, lambda it: self._time(it, "batch_to_device", "to_device"))

    def _watch_train(self, state: Any) -> None:
        loader = state.train_dataloader if state.train_dataloader is not None else state.dataloader
        self._once(loader, lambda it: self._watches.add(watch_loader(it, self._fetch_begins, self._fetch_ends)))

    def _fetch_begins(self) -> None:
        stamp = self._state.timestamp
        if self._is_evaluating():  # by the training's own loader
            self.training.eval_fetch_begins()
        elif "dataloader" in self._begun:  # else the trainer turns the loader to the epoch that it resumes at
            self.training.fetch_begins(int(stamp.batch), int(stamp.epoch), int(stamp.batch_in_epoch), _length(self._state))

    def _fetch_ends(self, item: Any, is_found: bool) -> None:
        if self._is_evaluating():
            self.training.eval_fetch_ends(is_found)
        else:
            self.training.fetch_ends(None, is_found)

    def _is_evaluating(self) -> bool:
        return "eval" in self._begun or "predict" in self._begun

    def _watch_eval(self, loader: Any) -> None:
        training = self.training
        if loader is not None:
            self._of_evaluation.add(watch_loader(loader, training.eval_fetch_begins,
                                                 lambda item, found: training.eval_fetch_ends(found)))  # fmt: skip

    def _once(self, thing: Any, watch: Callable[[Any], None]) -> None:
        """Of each that is new; of one whose watch was interrupted, again."""
        if thing is not None and id(thing) not in self._watched:
            watch(thing)
            self._watched.add(id(thing))

    def _time(self, owner: Any, name: str, timing: str) -> None:
        training = self.training
        self._watches.add(watch_call(owner, name, lambda *_, **__: training.begin(timing),
                                     lambda: training.end(timing)))  # fmt: skip

    def _time_events(self, owner: Any, name: str, kind: str, place: int) -> None:
        """A method whose argument at `place` is an event. Those that it does nothing at cost, and are, next to nothing:
        they are left out."""
        label = type(owner).__name__
        training = self.training
        begun: list[tuple[str | None, float]] = []

        def begin(*args: Any, **keywords: Any) -> None:
            event = args[place] if len(args) > place else keywords.get("event")
            begun.append((getattr(event, "value", None), time.perf_counter()))

        def end() -> None:
            value, begin_s = begun.pop()
            if value is not None and (kind == "algorithm" or _does(owner, value)):
                training.took(f"{kind}/{label}/{value}", time.perf_counter() - begin_s)

        self._watches.add(watch_call(owner, name, begin, end))


def _does(callback: Any, event: str) -> bool:
    """Whether it has a method of its own for that."""
    from composer import Callback

    kind = type(callback)
    return (getattr(kind, event, None) is not getattr(Callback, event, None)
            or kind.run_event is not Callback.run_event)  # fmt: skip


def _length(state: Any) -> int | None:
    length = state.dataloader_len
    return None if length is None else int(length)


def _make_callback() -> type:
    from composer import Callback

    class StepwellCallback(Callback):  # type: ignore[misc]
        """`run` is the one that is open, else a new one."""

        def __init__(self, run: Run | None = None) -> None:
            self._stepwell = _Watcher(run)

        def run_event(self, event: Any, state: Any, logger: Any) -> None:
            self._stepwell.on_event(event, state)

        def close(self, state: Any, logger: Any) -> None:
            self._stepwell.close()

    return StepwellCallback


def __getattr__(name: str) -> Any:
    """A class of Composer's, which is imported where it is asked for."""
    if name != "StepwellCallback":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    made = globals().get(name)
    if made is None:
        made = _make_callback()
        made.__module__, made.__qualname__ = __name__, name
        globals()[name] = made
    return made
