"""Batches: what torch's DataLoaders give, as hooks see it: steps of a training, fetches of an evaluation, and what
iter(loader) takes.
"""

from __future__ import annotations

import threading
import time
import weakref

from stepwell._load import core
from stepwell.hooks._ahead import AheadLoaders
from stepwell.hooks._hook import Hook
from stepwell.hooks._kept import KeptIterator
from stepwell.hooks._notes import forget, has_room, note, noted
from stepwell.hooks._planned import Planner, followed_run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_LOOP = "_stepwell_loop"  # in a DataLoader's iterator, where FetchCall looks for it
_EPOCH = "_stepwell_epoch"  # there, too: of a run with a schedule
_BEGUN = "_stepwell_begun"  # there, too: when it was made, and how long that took
_DURATION = 3
_RECORDING = (1, 2)  # core.state(): into the spool, or into memory alone


class Batches:
    """A run that nobody has opened yet is opened by opens() where is_waiting(); seen(batch) is told of each batch of a
    training. Of the main thread; nothing of ours is raised."""

    def __init__(
        self, torch: Any, is_waiting: Callable[[], bool], opens: Callable[[], bool], seen: Callable[[int], None]
    ) -> None:
        self.hook = Hook("the DataLoader")
        self.ahead_hook = Hook("Accelerate's loaders")
        self.evaluation_hook = Hook("an evaluation's DataLoader")
        self._torch = torch
        self._is_waiting = is_waiting
        self._opens = opens
        self._seen = seen
        self._series: dict[tuple[str, str], Any] = {}
        self._kept = KeptIterator()
        self._planner = Planner()
        self._ahead = AheadLoaders(self.ahead_hook, self._is_training, self._see_batch, self._planner)
        self._call: Any = None

    def put(self) -> None:
        from torch.utils.data.dataloader import _BaseDataLoaderIter  # type: ignore[import-not-found]

        self._call = self.hook.handle(core.FetchCall(self.next_batch, self._torch.is_grad_enabled))
        self.hook.replace(_BaseDataLoaderIter, "__next__", self._call)
        # While a schedule is followed, too: loops that were left are noticed where nothing is recorded.
        self.hook.replace(self._torch.utils.data.DataLoader, "__iter__", self.iterate, is_followed=True)
        self._ahead.put()

    def may_go_on_alone(self, is_plain: bool) -> None:
        """Whether asks need no line of Python, but for what is rare."""
        if self._call is not None:
            self._call.is_plain = is_plain and not self.hook.trouble and followed_run() is None

    def iterate(self, original: Any, loader: Any) -> Any:
        """iter(loader): what it takes is told with the first ask, which says whether it is a training's."""
        self.leave_kept()
        begin_us, begin = time.time_ns() // 1000, time.perf_counter()
        items = original(loader)
        try:
            if not self.hook.trouble:
                # A loader's own kind may have no room for it: what it took is left out.
                if has_room(items):
                    note(items, _BEGUN, (begin_us, time.perf_counter() - begin))
                    if getattr(loader, "_iterator", None) is items:  # its workers persist
                        self._kept.watch(weakref.ref(items))
        except Exception as error:
            self.hook.fail(error)
        return items

    def leave_kept(self) -> None:
        """A loop whose workers persist and that was left by `break`: its loader keeps the iterator, with a step open."""
        try:
            items = self._kept.found_left()
            loop = None if items is None else forget(items, _LOOP)
            if loop is not None:
                core.leave_loop(loop)
        except Exception as error:
            self.hook.fail(error)

    def next_batch(self, original: Any, iterator: Any) -> Any:
        if self._ahead.is_asked:
            self._tell_begun(iterator, "train")
            return self._ahead.fetch(original, iterator)
        loop = run = None
        is_eval = False
        try:
            if self._may_see_batch():
                run = followed_run()
                if run is not None or self._is_waiting() or core.state() in _RECORDING:
                    is_eval = not self._torch.is_grad_enabled()
                    if not is_eval:
                        loop = self._loop_of(iterator)
        except Exception as error:
            self.hook.fail(error)
        if loop is not None:
            return self._next_of(loop, original, iterator) if run is None else self._next_planned(
                run, loop, original, iterator)  # fmt: skip
        if is_eval:
            return self._next_of_evaluation(original, iterator)
        return original(iterator)

    def _may_see_batch(self) -> bool:
        """False within the fetch of a loop over run.steps, which times it itself."""
        return (not self.hook.trouble and threading.current_thread() is threading.main_thread()
                and not core.is_fetching())  # fmt: skip

    def _loop_of(self, iterator: Any) -> Any:
        if self._is_waiting() and not self._opens():
            return None
        loop = noted(iterator, _LOOP)
        # Where workers persist the next epoch has the same iterator, which knows how many it has given in it.
        if loop is None or getattr(iterator, "_num_yielded", 1) == 0:
            for name in (_LOOP, _EPOCH):
                forget(iterator, name)
            loop = None  # the last one's is over, also where `break` left a step open
            self.leave_kept()
            self._tell_begun(iterator, "train")
            # Each loader has a sampler of its own, which its iterators hold.
            loop = note(iterator, _LOOP, core.hooked_loop(getattr(iterator, "_index_sampler", None)))
        return loop

    def _next_of(self, loop: Any, original: Any, iterator: Any) -> Any:
        items = core.next_by(loop, original, iterator)
        self._see_batch()
        return items

    def _next_planned(self, run: Any, loop: Any, original: Any, iterator: Any) -> Any:
        """Switched by the run's schedule between the step that ends and the one that begins."""
        batch, epoch = core.begin_step(loop), None
        try:
            if batch is not None:
                epoch, is_on_now = self._planner.switches_on(run, noted(iterator, _EPOCH), iterator, batch)
                note(iterator, _EPOCH, epoch)
                if is_on_now:
                    core.begin_step(loop, True)
        except Exception as error:
            self.hook.fail(error)
        try:
            items = core.fetch_step(loop, original, iterator)
        except StopIteration:
            try:
                if epoch is not None:
                    self._planner.ends(run, epoch)
            except Exception as error:
                self.hook.fail(error)
            raise
        self._see_batch()
        return items

    def _see_batch(self) -> None:
        self.hook.seen_count += 1
        self._seen(core.batch())

    def _is_training(self) -> bool:
        """What is asked for a batch now, and is recorded, or may be as the run's schedule says."""
        if self.hook.trouble or core.is_fetching() or not self._torch.is_grad_enabled():
            return False
        if self._is_waiting():
            return self._opens()
        return core.state() in _RECORDING or followed_run() is not None

    def _next_of_evaluation(self, original: Any, iterator: Any) -> Any:
        self.leave_kept()
        self._tell_begun(iterator, "eval")
        begin_us, begin = time.time_ns() // 1000, time.perf_counter()
        items = core.fetch_by(original, iterator)
        self._tell_loader("dataloader_next", "eval", begin_us, time.perf_counter() - begin)
        return items

    def _tell_begun(self, iterator: Any, kind: str) -> None:
        try:
            begun = forget(iterator, _BEGUN)
        except Exception as error:
            self.hook.fail(error)
            return
        if begun is not None:
            self._tell_loader("dataloader_iter", kind, *begun)

    def _tell_loader(self, name: str, kind: str, begin_us: int, took_s: float) -> None:
        if self.evaluation_hook.trouble or core.state() not in _RECORDING:
            return
        try:
            series = self._series.get((name, kind))
            if series is None:
                series = core.define_series("timing", name, "seconds", _DURATION, {"loader": kind})
                self._series[name, kind] = series
            core.record_at(series, core.batch(), begin_us, took_s)
            self.evaluation_hook.seen_count += kind == "eval"
        except Exception as error:
            self.evaluation_hook.fail(error)
