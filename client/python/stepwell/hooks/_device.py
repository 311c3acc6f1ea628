"""Device: the GPU of a training, as torch knows it: how long it worked on what it was given, and its allocator.

One in a process, of its main thread; hooks, scopes of `run.device_scope()` and integrations share it. Nothing waits for
the GPU, and nothing of it is raised.
"""

from __future__ import annotations

import sys
import threading

from stepwell._load import core
from stepwell.hooks._allocator import Allocator
from stepwell.hooks._device_times import DeviceTimes
from stepwell.hooks._hook import Hook

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_DURATION = 3
_RECORDING = (1, 2)  # core.state(): into the spool, or into memory alone


class Device:
    """Of `torch`, or what is alike; found() is called once, when the GPU is used first."""

    def __init__(self, torch: Any) -> None:
        self.found: Callable[[], None] = lambda: None
        self.times_hook = Hook("the GPU's time")
        self.memory_hook = Hook("torch's allocator")
        self._torch = torch
        self._times: DeviceTimes | None = None
        self._allocator: Allocator | None = None
        self._series: dict[str, Any] = {}
        self._open: list[str] = []  # of this step
        self._given_up_before = 0  # the run

    @property
    def has_times(self) -> bool:
        return self._times is not None

    @property
    def is_within(self) -> bool:
        """What is timed."""
        return bool(self._open)

    @property
    def given_up_count(self) -> int:
        """Of this run."""
        return 0 if self._times is None else self._times.given_up_count - self._given_up_before

    def begin(self, name: str) -> Any:
        """What end() takes; None where nothing is timed: no GPU so far, or one of that name is open."""
        try:
            if self._times is None or name in self._open or core.state() not in _RECORDING:
                return None
            token = self._times.begin(name, core.batch())
            if token is not None:
                self._open.append(name)
            return token
        except Exception as error:
            self._fail(error)
        return None

    def end(self, token: Any) -> None:
        if token is None or self._times is None:
            return
        try:
            if token[0] in self._open:
                self._open.remove(token[0])
            self._times.end(token)
        except Exception as error:
            self._fail(error)

    def forget(self, name: str) -> None:
        if name in self._open:
            self._open.remove(name)

    def look(self, batch: int) -> bool:
        """At each step's begin, and between two. Whether there is a GPU that is used."""
        self._open.clear()  # what an exception left
        try:
            cuda = self._torch.cuda
            if not cuda.is_initialized():
                return False
            if self._times is None and not self.times_hook.trouble:
                self._times = DeviceTimes(
                    lambda: cuda.Event(enable_timing=True),  # type: ignore[no-any-return]
                    cuda.is_current_stream_capturing,
                    self._store,
                    getattr(cuda, "current_device", lambda: 0),
                )
                self.found()
            # Switched off, nobody would keep what is read.
            if self._times is not None and core.state() in _RECORDING:
                self._times.read(batch if batch >= 0 else None)
                self.times_hook.seen_count += 1
        except Exception as error:
            self._fail(error)
        try:
            if self._allocator is None:
                self._allocator = Allocator(self._torch.cuda)
            if not self.memory_hook.trouble:
                self._allocator.sample(batch)
                self.memory_hook.seen_count += 1
        except Exception as error:
            self.memory_hook.fail(error)
        return True

    def run_begins(self) -> None:
        if self._times is not None:
            self._given_up_before = self._times.given_up_count

    def recording_ends(self) -> None:
        """What the GPU has not done by then is the run's next window's to tell, with its own batch: nothing waits."""
        try:
            if self._times is not None and threading.current_thread() is threading.main_thread():
                self._times.read(None)
        except Exception as error:
            self._fail(error)

    def run_ends(self) -> None:
        """What no window told by then is told as not seen."""
        if self._times is not None:
            self._times.give_up()

    def _fail(self, error: Exception) -> None:
        self.times_hook.fail(error)
        self._times = None

    def _store(self, name: str, batch: int, time_us: int, seconds: float) -> None:
        series = self._series.get(name)
        if series is None:
            series = core.define_series("timing", name, "seconds", _DURATION, {"clock": "device"})
            self._series[name] = series
        core.record_at(series, batch, time_us, seconds)


_device: Device | None = None


def of(torch: Any) -> Device:
    """The one of this process."""
    global _device
    if _device is None:
        _device = Device(torch)
    return _device


def found() -> Device | None:
    """None where the program has no torch with CUDA, or this thread is not its main one. Never raises."""
    torch = sys.modules.get("torch")
    cuda = getattr(torch, "cuda", None)
    if cuda is None or not hasattr(cuda, "is_initialized") or threading.current_thread() is not threading.main_thread():
        return None
    return of(torch)


def existing() -> Device | None:
    return _device
