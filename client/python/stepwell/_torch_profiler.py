"""torch.profiler by our schedule: what it saw goes to the master as a trace of the batches that it shows, and our scopes
lie in it.

torch is imported when one is made, not before. What goes wrong in a training step is a warning: the training goes on.
"""

from __future__ import annotations

import os
import tempfile

from stepwell import _identity, _mirroring, _run, _schedule, _torch_export, _trace_writing
from stepwell._load import core, is_absent
from stepwell._tell import described, say, warn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import Any


_RECORDED = (_schedule.Action.ACTIVE, _schedule.Action.SAVE)


class TorchProfiler:
    """Made by stepwell.torch_profiler(). As torch's: entered and left, or start() and stop(), and step() at the end of
    each batch."""

    def __init__(self, schedule: Callable[[Any], object] | None, directory: str | None, options: dict[str, Any]) -> None:
        from torch import profiler

        self._torch = profiler
        run = _run._run
        if schedule is None and run is not None:
            schedule = run._schedule
        if isinstance(schedule, _schedule.Schedule):
            schedule = schedule.resumed(batch=0)  # torch's steps count from its begin
        if isinstance(schedule, _schedule.Schedule) and schedule.per != "run":
            raise ValueError('stepwell: torch_profiler: the schedule is per epoch; allowed: one per run (per="run")')
        self._schedule = schedule
        self._actions = {
            _schedule.Action.SKIP: profiler.ProfilerAction.NONE,
            _schedule.Action.WARMUP: profiler.ProfilerAction.WARMUP,
            _schedule.Action.ACTIVE: profiler.ProfilerAction.RECORD,
            _schedule.Action.SAVE: profiler.ProfilerAction.RECORD_AND_SAVE,
        }
        self._directory = directory or os.environ.get("STEPWELL_TRACES") or None
        rank: Any = run._options["rank"] if run is not None else None
        self._rank = _identity.rank(None if rank is None or rank < 0 else rank)
        self._step = 0
        self._batches: list[int] = []  # of the window that is recorded
        self._epoch = -1  # of the last of them
        self._written: list[str] = []  # that stay where they are, the oldest first
        self._is_running = False
        self._is_refused = False
        self._keeps_one = bool(options.get("acc_events"))  # one of autograd's for all windows
        self._profile: Any = profiler.profile(
            schedule=None if schedule is None else self._action_of, on_trace_ready=self._take, **options
        )

    @property
    def profile(self) -> Any:
        """torch's own."""
        return self._profile

    def start(self) -> None:
        self._profile.start()
        self._is_running = True
        self._mirror()

    def step(self) -> None:
        """The batch is over."""
        if not self._is_running:
            return
        if self._records():
            batch = core.batch()
            self._batches.append(self._step if batch < 0 else batch)
            self._epoch = _trace_writing.epoch()
        self._step += 1
        try:
            self._profile.step()
        except Exception as error:
            self._give_up(error)
        self._mirror()

    def stop(self) -> None:
        """What was recorded of a window is kept."""
        if not self._is_running:
            return
        self._is_running = False
        _mirroring.end(self)
        try:
            self._profile.stop()
        except Exception as error:
            self._give_up(error)
        _trace_writing.wait()

    def __enter__(self) -> TorchProfiler:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _action_of(self, step: int) -> Any:
        """What torch asks of each step, one ahead. Torch drops a window that ends without RECORD_AND_SAVE: one that a function
        which says True and False ends ends with the last of its steps."""
        assert self._schedule is not None
        if self._is_refused:
            return self._actions[_schedule.Action.SKIP]
        try:
            action = self._asked(step)
            if action == _schedule.Action.ACTIVE and self._asked(step + 1) not in _RECORDED:
                action = _schedule.Action.SAVE
        except Exception as error:
            self._schedule = lambda _: False
            warn(f"stepwell: torch's profiler records no more: {described(error)}")
            action = _schedule.Action.SKIP
        return self._actions[action]

    def _asked(self, step: int) -> _schedule.Action:
        assert self._schedule is not None
        return _schedule.action_of(self._schedule(_schedule.Place(step)))

    def _records(self) -> bool:
        action = self._profile.current_action
        return action in (self._torch.ProfilerAction.RECORD, self._torch.ProfilerAction.RECORD_AND_SAVE)

    def _mirror(self) -> None:
        """Scopes are torch's, too, while it records: otherwise that would cost what it costs."""
        if not self._is_running or self._profile.current_action == self._torch.ProfilerAction.NONE:
            _mirroring.end(self)
        else:
            _mirroring.begin(self)

    def _take(self, profile: Any) -> None:
        """A window is over: its trace is written, and left for the agent to upload. Apart, but at the profiler's end."""
        batches, self._batches = self._batches, []
        epoch = self._epoch if batches else -1
        if is_absent and self._directory is None:  # nobody would find it
            return
        seen = profile.profiler
        if self._is_running and not self._keeps_one:
            _trace_writing.one_at_a_time(lambda: self._keep(seen, epoch, batches))
        else:
            _trace_writing.wait()
            self._keep(seen, epoch, batches)

    def _keep(self, seen: Any, epoch: int, batches: list[int]) -> None:
        path, is_ours = "", False
        try:
            path, is_ours = self._path(epoch, batches)
            _torch_export.write(seen, path, self._rank)
        except Exception as error:
            if path:  # a part of it tells nobody anything
                _torch_export.remove(path, is_ours)
            return warn(f"stepwell: what torch's profiler saw is lost: {described(error)}")
        first, last = (batches[0], batches[-1]) if batches else (-1, -1)
        is_left = _trace_writing.upload(path, epoch, first, last, is_ours)
        if not is_ours:
            self._written.append(path)
            self._remove_older()
        if is_left:
            return
        if is_ours:
            self._refuse(path)
        else:
            say(f"stepwell: no agent uploads {path}; 'stepwell trace import TRIAL {path}' does")

    def _remove_older(self) -> None:
        """As of what agents record: one that is removed before it is uploaded is not."""
        text = os.environ.get("STEPWELL_TRACES_KEEP", "")
        kept_max = int(text) if text.isascii() and text.isdigit() else 0  # the recorder says what else is wrong
        while 0 < kept_max < len(self._written):
            _torch_export.remove(self._written.pop(0), False)

    def _refuse(self, path: str) -> None:
        """Nobody would ever take it, nor those of later windows."""
        _torch_export.remove(path, True)
        run = _run._run
        if run is not None and not run._is_closed and not run._is_on:  # until its next window
            return
        if self._is_refused:  # of the step that torch had asked of before
            return
        self._is_refused = True
        say("stepwell: torch's profiler records no more: no agent takes what it saw, which is not kept; directory= keeps it")

    def _path(self, epoch: int, batches: list[int]) -> tuple[str, bool]:
        """Where there is none of that name; and whether it is to go again."""
        directory, is_ours = self._directory, self._directory is None
        if directory is None:
            directory = tempfile.mkdtemp(prefix="stepwell-traces-")
        else:
            os.makedirs(directory, mode=0o700, exist_ok=True)
        stem = os.path.abspath(os.path.join(directory, _torch_export.stem(epoch, (batches or [-1])[-1], self._rank)))
        path, count = f"{stem}.pt.trace.json", 1
        while os.path.lexists(path):
            count += 1
            path = f"{stem}.{count}.pt.trace.json"
        return path, is_ours

    def _give_up(self, error: Exception) -> None:
        was_running, self._is_running = self._is_running, False
        _mirroring.end(self)
        if was_running:  # else it would gather operators until the process ends
            try:
                self._profile.stop()
            except Exception:
                pass  # it has told what it could not do
        warn(f"stepwell: torch's profiler ended: {described(error)}")


def made(schedule: Callable[[Any], object] | None, directory: object, options: dict[str, Any]) -> TorchProfiler:
    for name in ("on_trace_ready",):
        if name in options:
            raise ValueError(f"stepwell: torch_profiler: {name} is given; allowed: it takes the traces itself")
    _schedule.checked(schedule)
    if directory is not None and not isinstance(directory, (str, os.PathLike)):
        raise TypeError(f"stepwell: torch_profiler: directory is {directory!r}; allowed: a path")
    return TorchProfiler(schedule, None if directory is None else os.fspath(directory), options)  # type: ignore[arg-type]
