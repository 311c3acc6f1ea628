"""Training: what the modules of frameworks tell of a training, as steps, timings and series. Of one thread."""

from __future__ import annotations

import sys
import threading
import time
import weakref
from collections.abc import Mapping
from itertools import islice
from typing import NamedTuple

from stepwell import _run, _stepping
from stepwell._load import core
from stepwell._look_ahead import LookAhead
from stepwell._schedule import Place
from stepwell.integrations import _calls
from stepwell.integrations._guard import guard_methods, guarded, tell_once

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from stepwell._core import Scope, Series
    from stepwell._device_scope import DeviceScope
    from stepwell._run import Run
    from stepwell.integrations._watch import Watches


_PART_COUNT_MAX = 16
# What a GPU works on, where there is one. Hooks would see some of it, and put nothing in where an integration opens the run.
ON_DEVICE = ("train_batch", "forward", "backward", "optimizer_step")


class _Begun(NamedTuple):
    """A training that its framework said begins."""

    training: weakref.ref[Training]
    watches: weakref.ref[Watches] | None  # for it
    call: _calls.Frames  # of the framework's that trains


# Of each thread: those that one of them trains in, as a callback's probe in the training that it probes, the innermost last.
_begun: dict[int, list[_Begun]] = {}


def uses_device() -> bool:
    """Whether this process has used a GPU by torch."""
    is_initialized = getattr(getattr(sys.modules.get("torch"), "cuda", None), "is_initialized", None)
    return is_initialized is not None and bool(is_initialized())


@guarded
def samples_of(batch: Any) -> int | None:
    """How many samples a batch has: the first dimension of the first array in it, as far as a few looks show. Of each
    level the first parts are looked at, and only the first of them for more: a batch may be thousands of lists."""
    for _ in range(5):
        if isinstance(batch, Mapping):
            parts = list(islice(batch.values(), _PART_COUNT_MAX))
        elif isinstance(batch, (list, tuple)):
            parts = list(batch[:_PART_COUNT_MAX])
        else:
            parts = []
        for part in (batch, *parts):
            shape = getattr(part, "shape", None)
            if shape is not None:
                return int(shape[0]) if len(shape) > 0 else None
        if not parts:
            return None
        batch = parts[0]
    return None


@guard_methods
class Training:
    """A step reaches from the first fetch of a batch to that of the next one's.

        training.fetch_begins(batch=7, epoch=1)
        training.fetch_ends(samples=32)
        training.begin("train_batch"); ...; training.end("train_batch")
        training.step_ends()                      # the next fetch begins another
        training.leave()                          # evaluation: in no step
        training.eval_fetch_begins(); training.eval_fetch_ends()
    """

    def __init__(self, run: Run | None = None) -> None:
        self._given_run = run
        self._stepping: Any = None
        self._of_run: Run | None = None
        self._durations: dict[tuple[str, str], Series] = {}
        self._series: dict[str, Series] = {}
        self._open: list[tuple[str, Scope | DeviceScope]] = []
        self._place: Place | None = None
        self._epoch: int | None = None
        self._in_epoch = 0  # batches since it changed, for who does not say
        self._is_over = True  # no step is open, or the one that is ended
        self._samples: int | None = None
        self._step_begin_s = 0.0
        self._fetch_begin_s: float | None = None
        self._ahead: LookAhead | None = None  # of a loader that fetches a batch ahead
        self._ahead_loader: Any = None
        self._ahead_begin_s: float | None = None
        self._eval_begin_s: float | None = None
        self._fetch_ns = 0
        self._fetch_count = 0
        self._is_resumed = False
        self._loop: _stepping.LoopEpoch | None = None  # that asked last
        self._transfer_begin_s: float | None = None
        self._transfer_s = 0.0  # within the fetch that is on its way
        self._call: _calls.Frames = []  # that it began in
        self._thread = threading.get_ident()  # where it did

    def __reduce__(self) -> Any:
        """A copy has told nothing yet."""
        return type(self), (self._given_run,)

    @property
    def run(self) -> Run:
        """The one that was given, else the one that is open, else a new one. Once that is closed none is opened by what
        comes after, as an evaluation, but by a training."""
        run = self._of_run
        if run is None or run._is_closed:
            run = self._find_run(may_open=run is None)
            self._use(run)
        return run

    def _use(self, run: Run) -> None:
        if run is not self._of_run:
            self._of_run, self._stepping = run, _stepping.Stepping(run)

    def _find_run(self, may_open: bool) -> Run:
        if self._given_run is not None:
            return self._given_run
        run = self._of_run
        if run is None or (run._is_closed and not _run._is_exiting and (may_open or _run.open_run() is not None)):
            try:
                return _run.init_alone()
            except Exception as error:  # where the interpreter ends, say
                tell_once("the training", error)
                return _run._of_this_process()
        return run

    def train_begins(self, watches: Watches | None = None, function: str = "fit") -> None:
        """Frameworks tell of no end where an exception or Ctrl-C was it: what they left open is over. So is what was
        watched for it: `watches` are those of this one, which the caller has. `function` is what the framework trains in.
        A call of any that this thread is in still goes on after this."""
        there = _calls.frames()
        self._thread = threading.get_ident()
        self._call = own = _calls.call_of(function, there)
        outer = own[1:] if own else there
        begun = _begun.get(threading.get_ident(), [])
        for left in begun:
            left_training = left.training()
            if _calls.goes_on(left.call, outer):
                if left_training is not None and left_training is not self:
                    left_training.leave_for_another()
                continue
            if left_training is not None:
                left_training.leave()
            left_watches = None if left.watches is None else left.watches()
            if left_watches is not None and left_watches is not watches:
                left_watches.end()
        self.leave()
        _begun[threading.get_ident()] = [one for one in begun if _calls.goes_on(one.call, outer)] + [
            _Begun(weakref.ref(self), None if watches is None else weakref.ref(watches), own)]  # fmt: skip
        self._use(self._find_run(may_open=True))

    def leave_for_another(self) -> None:
        """A training that begins within this one has steps of its own, but within a batch, whose part it is."""
        if not self.has_batch:
            self.leave()
            if self._stepping is not None:
                self._stepping.tells_anew()

    def goes_on(self) -> bool:
        """Whether this thread is in the call that it began in. Of another one, as a framework's that tells of events later, it
        is not known: so it is."""
        return threading.get_ident() != self._thread or _calls.is_within(self._call)

    def goes_on_around(self, function: str) -> bool:
        """Whether the innermost call of that name is made within it."""
        there = _calls.frames()
        own = _calls.call_of(function, there)
        return _calls.goes_on(self._call, own[1:] if own else there)

    def evaluation_begins(self) -> None:
        """Without a training. Where a run was closed before it opens none."""
        if self._of_run is None and self._given_run is None and _run.is_any_opened():
            last = _run._of_this_process()
            if last._is_closed:
                self._use(last)

    # --- steps ---

    def fetch_begins(
        self, batch: int | None = None, epoch: int | None = None, batch_in_epoch: int | None = None,
        length: int | None = None, loop: _stepping.LoopEpoch | None = None,
    ) -> None:  # fmt: skip
        """Of a batch. Where no step is open it opens one, of this batch, index None = the next in count. `loop` is the one
        that asks, where there may be several."""
        run = self.run
        self._loop = loop
        now_s = time.perf_counter()
        if self._is_over:
            self._end_step(now_s)
            if not self._is_resumed:
                _stepping.resume(run, batch, epoch, batch_in_epoch or 0)
                self._is_resumed = True
            known = self._stepping.upcoming if batch is None else batch
            if epoch != self._epoch:
                self._epoch, self._in_epoch = epoch, 0
            if batch_in_epoch is None and epoch is not None:
                batch_in_epoch = self._in_epoch
            self._place = Place(known, (epoch or 0) if loop is None else loop.of(run), batch_in_epoch, length)
            self._stepping.begin(self._place)
            self._is_over = False
            self._samples = None
            self._step_begin_s = now_s
        self._transfer_s = 0.0
        self._set_fetching(True)
        self._fetch_begin_s = time.perf_counter()

    def fetch_ends(self, samples: int | None = None, is_found: bool = True) -> None:
        """Not found: that was the last of its epoch."""
        self._set_fetching(False)
        if self._fetch_begin_s is None:
            return
        seconds: float | None = max(0.0, time.perf_counter() - self._fetch_begin_s - self._transfer_s)
        self._fetch_begin_s = None
        if self._ahead is not None and is_found:
            if getattr(self._ahead_loader, "end_of_dataloader", False):  # of an uneven epoch no fetch finds the end
                self._ahead.ended()
            seconds = self._ahead.handed_out()
        if not is_found:
            if self._fetch_count == 0:
                self.leave(is_epoch_over=True)
            return
        if seconds is not None:
            self.took("dataloader_next", seconds, "" if self._stepping.is_part else "train")
            self._fetch_ns += int(seconds * 1e9)
        if self._loop is not None and not self._stepping.is_part:
            self._loop.begins(self.run)
        self._fetch_count += 1
        self.add_samples(samples)
        if self._fetch_count == 1:
            self._count()

    def looks_ahead(self, loader: Any) -> None:
        """An iteration of a loader begins that fetches a batch ahead of the one that it hands out; what it fetches is
        told within the fetches above. One that is told of none is timed as any other."""
        self._ahead, self._ahead_loader = None, loader

    def ahead_begins(self) -> None:
        self._ahead_begin_s = time.perf_counter()

    def ahead_ends(self, is_found: bool) -> None:
        begin_s, self._ahead_begin_s = self._ahead_begin_s, None
        if begin_s is None:
            return
        if self._ahead is None:
            self._ahead = LookAhead()
        if is_found:
            self._ahead.fetched(time.perf_counter() - begin_s)
        else:
            self._ahead.ended()

    def add_samples(self, samples: int | None) -> None:
        """Of a batch that was seen after its fetch."""
        if samples is not None:
            self._samples = (self._samples or 0) + samples

    def step_ends(self) -> None:
        """What comes until the next fetch is a part of it still."""
        self._is_over = True

    @property
    def behind_trained(self) -> int:
        """The number behind that of the last batch that was trained in this run."""
        self._use(self.run)
        return int(self._stepping.behind_trained)

    @property
    def has_batch(self) -> bool:
        """Whether a step is open whose batch is there."""
        return not self._is_over and self._fetch_count > 0

    @property
    def is_between(self) -> bool:
        """Whether no step is open, nor a fetch on its way: what was begun was left."""
        return self._is_over and self._fetch_begin_s is None

    @property
    def place(self) -> Place | None:
        """Of the step that is open, or ended last."""
        return self._place

    @property
    def batch(self) -> int:
        """Of the step that is open, or ended last."""
        return -1 if self._place is None else int(self._place)

    def fetch_unseen(self) -> None:
        """The batch is there; how long that took is not known."""
        self._set_fetching(False)
        self._fetch_begin_s = None
        self._fetch_count += 1
        self._count()

    def _count(self) -> None:
        if self._place is not None:
            self._in_epoch += 1
            self._stepping.count(self._place, self._epoch)

    def leave_between(self) -> None:
        """Where nobody says that a step is over, but evaluation begins."""
        if self._fetch_count > 0:
            self._is_over = True
        self.leave()

    def abandon(self) -> None:
        """The step that is open is left midway: it is none."""
        self._is_over = False

    def leave_loop(self, loop: _stepping.LoopEpoch, is_midway: bool) -> None:
        """It asks no more. Another one that has asked since has its step still."""
        if self._loop is not loop:
            return
        if is_midway:
            self.abandon()
        self.leave(is_epoch_over=True)

    def break_off(self) -> None:
        """The loader is begun anew: a step that is open was left by `break`."""
        if self._stepping is not None:
            self.abandon()
            self.leave()

    def leave(self, is_epoch_over: bool = False) -> None:
        """The step that is open ends, if its batch was found; what comes lies in none."""
        if self._stepping is None:
            return
        self._close_scopes()
        if self._fetch_count > 0 and self._is_over:
            self._end_step(time.perf_counter())
            self._stepping.end_step()
        self._forget()
        if is_epoch_over:
            self._stepping.end_epoch()
        else:
            self._stepping.leave()

    def finish(self) -> None:
        """The training is over, however it ended."""
        self.leave()

    def _end_step(self, now_s: float) -> None:
        self._close_scopes()
        run = self._of_run
        # An interrupt between what is told here and its end would have it told twice.
        samples, fetch_ns, fetch_count = self._samples, self._fetch_ns, self._fetch_count
        self._forget()
        if run is not None and fetch_count > 0 and run._is_on:
            if not self._stepping.is_part:
                if samples and now_s > self._step_begin_s:
                    self.record("samples_per_second", samples / (now_s - self._step_begin_s), unit="samples/s")
                run._add_time("dataloader_next", fetch_ns, fetch_count)

    def _forget(self) -> None:
        self._fetch_ns = self._fetch_count = 0
        self._samples = self._fetch_begin_s = self._transfer_begin_s = None
        self._is_over = True
        self._set_fetching(False)

    def _set_fetching(self, is_begun: bool) -> None:
        if self._stepping is not None:
            self._stepping.fetching(is_begun)

    def transfer_begins(self) -> None:
        """To the device; some loaders do it within their fetch, of which it is no part then."""
        if self._transfer_begin_s is None:
            self._transfer_begin_s = time.perf_counter()
            self.begin("to_device")

    def transfer_ends(self) -> None:
        if self._transfer_begin_s is not None:
            self.end("to_device")
            self._transfer_s += time.perf_counter() - self._transfer_begin_s
            self._transfer_begin_s = None

    # --- evaluation ---

    def eval_fetch_begins(self) -> None:
        if self.run is not None:
            self._set_fetching(True)
        self._eval_begin_s = time.perf_counter()

    def eval_fetch_ends(self, is_found: bool = True) -> None:
        self._set_fetching(False)
        begin_s, self._eval_begin_s = self._eval_begin_s, None
        if begin_s is not None and is_found:
            self.took("dataloader_next", time.perf_counter() - begin_s, "eval")

    # --- timings ---

    def begin(self, name: str) -> None:
        run = self.run
        scope: Scope | DeviceScope = run.scope(name)
        if name in ON_DEVICE and uses_device():
            scope = run.device_scope(name)
        scope.__enter__()
        self._open.append((name, scope))

    def is_in(self, name: str) -> bool:
        return any(name == opened for opened, _ in self._open)

    def end(self, name: str) -> None:
        """With those that were begun in it and not ended, as an exception leaves them."""
        if all(name != opened for opened, _ in self._open):
            return
        while self._open:
            opened, scope = self._open.pop()
            scope.__exit__(None, None, None)
            if opened == name:
                return

    def _close_scopes(self) -> None:
        while self._open:
            self._open.pop()[1].__exit__(None, None, None)

    def took(self, name: str, seconds: float, loader: str = "", group: str = "timing") -> None:
        """A timing that is known when it is over."""
        key = (f"{group} {name}", loader)
        series = self._durations.get(key)
        if series is None:
            labels = {"loader": loader} if loader else None
            series = self.run.series(name, group=group, unit="seconds", kind="duration", labels=labels)
            self._durations[key] = series
        series.record(seconds)

    def record(self, name: str, value: Any, unit: str = "", batch: int | None = None) -> None:
        """With the batch of the step that is open, unless another is told."""
        series = self._series.get(name)
        if series is None:
            series = self._series[name] = self.run.series(name, unit=unit)
        if batch is None:
            series.record(value)
        elif self.run._is_on:  # else nobody asks for it
            core.record_at(series, batch, time.time_ns() // 1000, float(value))
