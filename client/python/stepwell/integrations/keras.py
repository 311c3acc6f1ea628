"""Keras 3.

    from stepwell.integrations.keras import StepwellCallback

    model.fit(..., callbacks=[StepwellCallback()])

Keras tells of a batch when it is there: the fetch is the time since the one before was over, with what other callbacks
did in it. On JAX the training function asks for the batch, and is watched at that; on TensorFlow it fetches where nothing
sees it.
"""

from __future__ import annotations

import sys
from typing import NamedTuple

from stepwell.integrations._callbacks import watch_callbacks
from stepwell.integrations._calls import watcher_begins, watcher_of
from stepwell.integrations._guard import guard_methods
from stepwell.integrations._training import Training
from stepwell.integrations._watch import Watches, watch_iterable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from stepwell._run import Run

_FRAME_COUNT_MAX = 10


class _Sizes(NamedTuple):
    """Of the data, as Keras's adapter names them."""

    batch_size: int | None
    partial_batch_size: int | None  # of its last batch
    num_batches: int | None


def _whole(adapter: Any, name: str) -> int | None:
    """None of an adapter that knows none: one of a dataset of Keras's raises then."""
    try:
        found = getattr(adapter, name, None)
    except NotImplementedError:
        return None
    return found if isinstance(found, int) else None


@guard_methods
class _Watcher:
    def __init__(self, run: Run | None, batch_size: int | None) -> None:
        self.training = Training(run)
        self.watches = Watches()
        self.around: _Watcher | None = None  # of the training that this one's is made within
        self._of_evaluation = Watches()  # of one by itself
        self.steps: int | None = None  # of an epoch
        self._given_size = batch_size
        self._sizes: _Sizes | None = None
        self._is_grouped = False
        self._epoch = 0
        self._offset: int | None = None  # of the batches' numbers; None = no epoch of this training has begun
        self._asks_within = self._eval_asks_within = False  # the training function asks for its batch
        self._is_asked = False  # in this batch

    def __reduce__(self) -> Any:
        """A copy has told nothing yet."""
        return type(self), (self.training._given_run, self._given_size)

    def anew(self) -> _Watcher:
        return type(self)(self.training._given_run, self._given_size)

    def train_begins(self) -> None:
        self.watches.end()
        self._offset = None
        self._of_evaluation.end()
        self.training.train_begins(self.watches)

    def find_sizes(self, model: Any) -> None:
        """What Keras tells no callback: it lies in the fit that calls this one."""
        # The adapter itself holds the data, which is the program's to give up.
        iterator = _local_of("fit", "epoch_iterator")
        self._asks_within = self._watch_asks(iterator, self.watches, self._ask_begins, self._ask_ends)
        adapter = getattr(iterator, "data_adapter", None)
        self._sizes = _Sizes(*(_whole(adapter, name) for name in _Sizes._fields))
        # One call of a callback is then a group of batches, of which nobody tells how many there are.
        self._is_grouped = getattr(model, "steps_per_execution", 1) not in (1, None)

    def _batch_size(self) -> int | None:
        """Of this batch; an epoch's last may have fewer samples."""
        place = self.training.place
        sizes = self._sizes
        if self._is_grouped:
            return None
        # The data's last batch, which steps_per_epoch may not reach.
        is_last = (sizes is not None and place is not None and place.length is not None
                   and place.batch_in_epoch == place.length - 1 and place.length == sizes.num_batches)  # fmt: skip
        partial = sizes.partial_batch_size if sizes is not None and is_last else None
        return partial or self._given_size or (sizes.batch_size if sizes is not None else None)

    def train_ends(self) -> None:
        self.training.finish()
        self.watches.end()

    def epoch_begins(self, epoch: int) -> None:
        self._epoch = epoch
        if self._offset is None:  # an epoch that was trained in this run already has numbers behind all of those
            self._offset = max(0, self.training.behind_trained - epoch * (self.steps or 0))
        self._fetch_begins(0)

    def batch_begins(self, batch: int) -> None:
        self._is_asked = False
        if self._asks_within:
            return
        if self.training.is_between:  # a callback has trained another model meanwhile
            self._fetch_begins(batch)
            self.training.fetch_unseen()
            self.training.add_samples(self._batch_size())
        self._batch_is_there()

    def _batch_is_there(self) -> None:
        self.training.fetch_ends(self._batch_size())
        self.training.begin("train_batch")

    def batch_ends(self, batch: int) -> None:
        if self._asks_within and not self._is_asked:  # it asked another one than the one that is watched
            self.training.fetch_unseen()
        self.training.end("train_batch")
        self.training.step_ends()
        self._fetch_begins(batch + 1)

    def _watch_asks(self, iterator: Any, watches: Watches, begin: Any, end: Any) -> bool:
        """Where the function that works on a batch asks for it, in Python: on JAX. Whether it is watched at that."""
        if iterator is None or _backend() != "jax":
            return False
        restore = watch_iterable(iterator, "_get_iterator", begin, end)
        watches.add(restore)
        return restore is not None

    def _ask_begins(self) -> None:
        self.training.end("train_batch")  # of the batch before, where one call of the function takes several
        place = self.training.place
        if place is not None:
            self._fetch_begins(place.batch_in_epoch)

    def _ask_ends(self, item: Any, is_found: bool) -> None:
        self._is_asked = True
        if is_found:
            self._batch_is_there()
        else:
            self.training.fetch_ends(is_found=False)

    def eval_begins(self, function: str = "evaluate", callback: Any = None, base: Any = None) -> None:
        """Also of predict(). Within a training the callbacks beside this one are watched already."""
        self._of_evaluation.end()  # what a Ctrl-C left
        if callback is not None:
            watch_callbacks(callback, base, self.training, self._of_evaluation)
        self.training.evaluation_begins()
        self.training.leave()
        self._eval_asks_within = self._watch_asks(_local_of(function, "epoch_iterator"), self._of_evaluation,
                                                  self._eval_ask_begins, self._eval_ask_ends)  # fmt: skip
        self.training.eval_fetch_begins()

    def _eval_ask_begins(self) -> None:
        self.training.end("eval_batch")
        self.training.eval_fetch_begins()

    def _eval_ask_ends(self, item: Any, is_found: bool) -> None:
        self.training.eval_fetch_ends(is_found)
        if is_found:
            self.training.begin("eval_batch")

    def eval_batch_begins(self) -> None:
        if not self._eval_asks_within:
            self.training.eval_fetch_ends()
            self.training.begin("eval_batch")

    def eval_batch_ends(self) -> None:
        self.training.end("eval_batch")
        self.training.eval_fetch_begins()

    def eval_ends(self) -> None:
        self.training.eval_fetch_ends(is_found=False)
        self._of_evaluation.end()

    def epoch_ends(self) -> None:
        self.training.leave(is_epoch_over=True)

    def _fetch_begins(self, batch_in_epoch: int) -> None:
        # Not what is next in count: hooks, where some are in, count what fit() looks at before it begins, and evaluations.
        batch = self.training.behind_trained
        if self.steps is not None:
            planned = self._epoch * self.steps + batch_in_epoch + (self._offset or 0)
            if not self.training.has_batch:  # else it opens no step; behind what a callback has trained, too
                self._offset = (self._offset or 0) + max(0, batch - planned)
            batch = max(batch, planned)
        self.training.fetch_begins(batch, self._epoch, batch_in_epoch, self.steps)


def _backend() -> str:
    backend: Any = getattr(sys.modules.get("keras"), "backend", None)
    return str(getattr(backend, "backend", str)())


def _local_of(function: str, name: str) -> Any:
    """Of the next one that called this: to look at the locals of others would keep what lies in them."""
    frame: Any = sys._getframe(1)
    for _ in range(_FRAME_COUNT_MAX):
        if frame is None:
            return None
        if frame.f_code.co_name == function:
            return frame.f_locals.get(name)
        frame = frame.f_back
    return None


def _make_callback() -> type:
    from keras.callbacks import Callback

    class StepwellCallback(Callback):  # type: ignore[misc]
        """`run` is the one that is open, else a new one. `batch_size` is for data of which Keras knows none."""

        def __init__(self, run: Run | None = None, batch_size: int | None = None) -> None:
            super().__init__()
            self._stepwell = _Watcher(run, batch_size)
            self._steps: int | None = None  # of an epoch; told before it is known which training's

        def set_params(self, params: dict[str, Any]) -> None:
            super().set_params(params)
            self._steps = (params or {}).get("steps")

        def on_train_begin(self, logs: Any = None) -> None:
            watcher = watcher_begins(self)
            watcher.steps = self._steps
            watcher.train_begins()
            watcher.find_sizes(getattr(self, "model", None))
            watch_callbacks(self, Callback, watcher.training, watcher.watches)

        def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
            watcher_of(self).epoch_begins(epoch)

        def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
            watcher_of(self).batch_begins(batch)

        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            watcher_of(self).batch_ends(batch)

        def on_test_begin(self, logs: Any = None) -> None:
            watcher_of(self).eval_begins("evaluate", self, Callback)

        def on_test_batch_begin(self, batch: int, logs: Any = None) -> None:
            watcher_of(self).eval_batch_begins()

        def on_test_batch_end(self, batch: int, logs: Any = None) -> None:
            watcher_of(self).eval_batch_ends()

        def on_test_end(self, logs: Any = None) -> None:
            watcher_of(self).eval_ends()

        def on_predict_begin(self, logs: Any = None) -> None:
            watcher_of(self).eval_begins("predict", self, Callback)

        def on_predict_batch_begin(self, batch: int, logs: Any = None) -> None:
            watcher_of(self).eval_batch_begins()

        def on_predict_batch_end(self, batch: int, logs: Any = None) -> None:
            watcher_of(self).eval_batch_ends()

        def on_predict_end(self, logs: Any = None) -> None:
            watcher_of(self).eval_ends()

        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            watcher_of(self).epoch_ends()

        def on_train_end(self, logs: Any = None) -> None:
            watcher_of(self).train_ends()

    return StepwellCallback


def __getattr__(name: str) -> Any:
    """A class of Keras's, which is imported where it is asked for."""
    if name != "StepwellCallback":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    made = globals().get(name)
    if made is None:
        made = _make_callback()
        made.__module__, made.__qualname__ = __name__, name
        globals()[name] = made
    return made
