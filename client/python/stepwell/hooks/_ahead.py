"""AheadLoaders: Accelerate's loaders, and so the Trainer's, which fetch a batch ahead of the one that they hand out.

A step begins where the training asks such a loader, not where that asks torch's; what it fetches meanwhile is told with
the batch that it is.
"""

from __future__ import annotations

import functools
import sys
import threading
import time

from stepwell._load import core
from stepwell._look_ahead import LookAhead
from stepwell.hooks import _watch
from stepwell.hooks._planned import followed_run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from stepwell.hooks._hook import Hook
    from stepwell.hooks._planned import Planner

_MODULE = "accelerate.data_loader"
_SHARD, _DISPATCHER = "DataLoaderShard", "DataLoaderDispatcher"
_DURATION = 3


class _AheadItems:
    """One iteration. What else is asked of it is the iterator's own."""

    def __init__(self, loaders: AheadLoaders, items: Iterator[Any], loader: Any) -> None:
        self._stepwell = loaders
        self.items = items
        self.loader = loader
        self.ahead = LookAhead()
        self.loop: Any = None
        self.epoch: Any = None  # of a run with a schedule

    def __iter__(self) -> _AheadItems:
        return self

    def __next__(self) -> Any:
        return self._stepwell.next_of(self)

    def __getattr__(self, name: str) -> Any:
        if name in ("items", "_stepwell"):  # asked for before it is there, by copy
            raise AttributeError(name)
        return getattr(self.items, name)


class AheadLoaders:
    """`hook` is the DataLoader's; is_training() whether what is asked for a batch now is a training's that is recorded, or
    may be by its run's schedule; seen() is told of each batch. Of the main thread."""

    def __init__(
        self, hook: Hook, is_training: Callable[[], bool], seen: Callable[[], None], planner: Planner
    ) -> None:
        self._hook = hook
        self._planner = planner
        self._is_training = is_training
        self._seen = seen
        self._asked: LookAhead | None = None  # last
        self._series: dict[bool, Any] = {}

    def put(self) -> None:
        """Now, or when the program imports them."""
        module = sys.modules.get(_MODULE)
        if module is None:
            _watch.on_import(_MODULE, lambda: self._put_into(sys.modules[_MODULE]), self._hook.fail)
        else:
            self._put_into(module)

    @property
    def is_asked(self) -> bool:
        """Whether one is at it for a training."""
        return self._asked is not None and self._asked.is_within and not core.is_fetching()

    def fetch(self, original: Callable[[Any], Any], items: Any) -> Any:
        """What it fetches meanwhile."""
        return self._timed(functools.partial(original, items), lambda _: True)

    def _put_into(self, module: Any) -> None:
        try:
            kinds = [getattr(module, name) for name in (_SHARD, _DISPATCHER)]
            iterates = [self._iterate(kind.__iter__) for kind in kinds]
            fetches = self._fetch_batches(kinds[-1]._fetch_batches)
            # All of it is known: nothing is put in by halves.
            for kind, iterate in zip(kinds, iterates):
                self._hook.put(kind, "__iter__", iterate)
            self._hook.put(kinds[-1], "_fetch_batches", fetches)
        except Exception as error:  # another version than those that are known
            self._hook.fail(error)

    def _iterate(self, original: Callable[[Any], Iterator[Any]]) -> Callable[[Any], Any]:
        @functools.wraps(original)
        def iterate(loader: Any) -> Any:
            return _AheadItems(self, original(loader), loader)

        return iterate

    def _fetch_batches(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """One rank's fetch for all."""

        @functools.wraps(original)
        def fetch(*args: Any, **keywords: Any) -> Any:
            if not self.is_asked:
                return original(*args, **keywords)
            return self._timed(functools.partial(original, *args, **keywords), lambda found: found[1][0] is not None)

        return fetch

    def _timed(self, fetch: Callable[[], Any], is_found: Callable[[Any], bool]) -> Any:
        ahead = self._asked if self._asked is not None else LookAhead()
        begin_s = time.perf_counter()
        try:
            found = core.fetch_by(lambda _: fetch(), None)
        except StopIteration:
            ahead.ended()
            raise
        took_s = time.perf_counter() - begin_s
        try:
            if is_found(found):
                ahead.fetched(took_s)
            else:
                ahead.ended()
        except Exception as error:
            self._hook.fail(error)
        return found

    def next_of(self, items: _AheadItems) -> Any:
        if not self._begins(items):
            items.ahead.forget()
            return next(items.items)
        self._asked = items.ahead
        try:
            batch = core.call_within(items.ahead, next, (items.items,), {})
        except BaseException as error:
            items.loop.leave()
            items.loop = None
            if isinstance(error, StopIteration):
                self._ends(items)
            raise
        self._counts(items)
        return batch

    def _begins(self, items: _AheadItems) -> bool:
        try:
            if self._hook.trouble or threading.current_thread() is not threading.main_thread() or not self._is_training():
                return False
            if items.loop is None:
                items.loop = core.Loop()
                has_steps = items.loop.begin(items.loader, True)
            else:
                has_steps = items.loop.next()
            run = followed_run()
            if run is not None and has_steps:
                items.epoch, is_on_now = self._planner.switches_on(run, items.epoch, items.loader, items.loop.upcoming())
                if is_on_now:
                    items.loop.begin(items.loader, True)
        except Exception as error:
            self._hook.fail(error)
            return False
        return True

    def _ends(self, items: _AheadItems) -> None:
        try:
            run = followed_run()
            if run is not None and items.epoch is not None:
                self._planner.ends(run, items.epoch)
        except Exception as error:
            self._hook.fail(error)

    def _counts(self, items: _AheadItems) -> None:
        try:
            batch = items.loop.count()
            if getattr(items.loader, "end_of_dataloader", False):  # of an uneven epoch no fetch finds the end
                items.ahead.ended()
            if items.ahead.is_over:  # the Trainer asks for no more than there are
                items.loop.ends_dropped()
            took_s = items.ahead.handed_out()
            if took_s is not None:
                self._record(took_s, core.batch() == batch)
            self._seen()
        except Exception as error:
            self._hook.fail(error)

    def _record(self, took_s: float, is_step: bool) -> None:
        series = self._series.get(is_step)
        if series is None:
            labels = {"loader": "train"} if is_step else {}
            series = core.define_series("timing", "dataloader_next", "seconds", _DURATION, labels)
            self._series[is_step] = series
        series.record(took_s)
        run = sys.modules["stepwell._run"]._run
        if is_step and run is not None and run._is_on:
            run._add_time("dataloader_next", int(took_s * 1e9), 1)
