"""Run: what is recorded from init() to close()."""

from __future__ import annotations

import atexit
import os
import sys
import time
from _thread import RLock  # type: ignore[attr-defined]  # older declarations lack it

from stepwell import _capture_door, _checks, _hooks_door, _parts
from stepwell._closings import Closings, are_stored_within
from stepwell._load import core, is_absent
from stepwell._tell import described, is_disabled, is_quiet, say, warn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from collections.abc import Callable
    from types import TracebackType
    from typing import Any, TypeVar

    from stepwell._core import Series, Steps
    from stepwell._device_scope import DeviceScope
    from stepwell._schedule import Place

    _Batch = TypeVar("_Batch")

_STATES = {0: "closed", 1: "recording", 2: "memory only", 3: "disabled"}
_CLOSED_HINT = "stepwell: the run is closed; stepwell.init() opens another"


@core.own_calls
class Run(core.Recording):
    """Made by init(). Calls that record are those of a training step, and raise nothing; the others may be made by
    any thread. `scope`, `record` and `steps` are the extension's."""

    def __init__(self, options: dict[str, object]) -> None:
        self._options = options
        self._lock = RLock()  # never while the master is waited for
        self._ending = RLock()  # while close() waits
        self._pid = os.getpid()
        self._is_on = False
        self._is_closed = False
        self._was_recorded = False
        self._is_stored = False  # as the last leave told
        self._last_message = ""  # from before it
        self._dropped_count = 0
        self._steps = 0
        self._steps_ns = 0
        self._paths: dict[str, tuple[int, int]] = {}
        self._schedule: Callable[[Place], object] | None = None
        self._given_schedule: Callable[[Place], object] | None = None  # before a training that resumes offset it
        self._window_count = 0
        self._is_resumed = False
        self._next_epoch = 0  # of a loop that says none
        self._epoch = -1  # that a loop or an integration said last; -1 = none did
        self._is_stepped = False  # by a loop over steps(), or an integration
        self._refuses_hooks = False
        self._closings = Closings()
        self._unknown_count = 0  # windows that nobody knows of, where all others are stored
        self._is_handed_out = False

    @property
    def trial(self) -> str | None:
        """Its name; None where the job gives it one."""
        return self._options["trial"]  # type: ignore[return-value]

    @property
    def state(self) -> str:
        """recording, memory only, disabled; off until on() or its schedule switches it on; closed."""
        state = "closed" if self._is_closed else _STATES[core.state()]  # of which another may be open
        is_off = state == "closed" and not (self._is_closed or self._is_on or is_absent or self._pid != os.getpid())
        return state if not is_off else "disabled" if is_disabled() else "off"

    @property
    def message(self) -> str:
        """Why nothing is recorded, or not as asked; empty where all is well."""
        return core.message()

    @property
    def dropped_count(self) -> int:
        """What was given up, for want of room for one."""
        return self._dropped_count + (core.dropped_count() if self._is_on else 0)

    def series(
        self,
        name: str,
        *,
        group: str = "training",
        unit: str = "",
        kind: str = "gauge",
        labels: Mapping[str, str] | None = None,
    ) -> Series:
        """What record() takes in place of a name, with more said about it. One of the group `training` without labels
        is what its plain name means from now on."""
        number = _checks.series(name, group=group, unit=unit, kind=kind)
        return core.define_series(group, name, unit, number, _checks.labels(labels, of_series=True))

    def steps(
        self, loader: Iterable[_Batch], *, start: int | None = None, epoch: int | None = None, batch_in_epoch: int = 0
    ) -> Steps[_Batch]:
        """Pairs (batch_index, batch) of the loader, each a step; its fetch is timed. `epoch` is recorded; a schedule
        goes by it. A training that resumes says `start`, and within an epoch `batch_in_epoch`."""
        if self._schedule is None and epoch is None and batch_in_epoch == 0:
            return super().steps(loader, start=start)
        from stepwell import _stepping

        return _stepping.planned(self, super().steps(loader, start=start), loader, start, epoch, batch_in_epoch)

    if TYPE_CHECKING:

        def device_scope(self, name: str) -> DeviceScope: ...

    else:  # what is no name scope() refuses, and raises nothing

        def device_scope(self, /, *arguments, **named):
            """As scope(), and timed on the GPU, too, where torch uses one: by CUDA events on the current stream, which
            nobody waits for. It costs what two events do."""
            from stepwell._device_scope import DeviceScope

            return DeviceScope(self.scope(*arguments, **named))

    def on(self, *, interval: float | None = None, groups: str | Iterable[str] | None = None) -> None:
        """Records, and samples the machine; what is given is so from now on. Again: changes nothing."""
        wanted: dict[str, object] = {}
        if interval is not None:
            wanted["interval_us"] = _checks.interval_us(interval)
        if groups is not None:
            wanted["groups"] = _checks.words("groups", groups)
        with self._lock:
            if self._is_closed:
                return warn(_CLOSED_HINT)
            is_as_wanted = all(self._options[key] == value for key, value in wanted.items())
            if self._is_on and not is_as_wanted:
                self._leave()
            self._options.update(wanted)
            if not self._is_on and not self._is_closed:
                self._open()

    def off(self) -> None:
        """Records nothing, and samples nothing, until on(). Again: changes nothing."""
        self._await_traces()
        with self._lock:
            if self._is_on:
                self._leave(is_switched_off=True)

    def flush(self, timeout: float = 5.0) -> bool:
        """Waits until all that was recorded so far is stored by the master; False = that is not known. The step that
        is open on a thread meanwhile is not one."""
        wait_ms = _checks.seconds("timeout", timeout)
        with self._lock:
            if not self._is_on:
                return False
            is_left = self._leave()
            closings, unknown_count = self._closings.waiting(), self._closings.unknown_count
            if not self._is_closed:  # by a signal's handler, meanwhile
                self._open()
        return is_left and are_stored_within(closings, wait_ms) and unknown_count == 0

    def upload_trace(
        self, path: str | os.PathLike[str], *, epoch: int | None = None, first_batch: int | None = None,
        last_batch: int | None = None,
    ) -> bool:  # fmt: skip
        """Leaves word for the agent to upload this file with the trial: what a profiler wrote (Chrome's JSON, .xplane.pb,
        Perfetto's, text). It is whole by then, and stays where it is. False = no agent will find it."""
        found = _checks.path("path", path)
        if not found:
            raise ValueError("stepwell: upload_trace: path is empty; allowed: a file's")

        def told(name: str, number: int | None) -> int:
            checked = _checks.number(name, number, 0, 2**31 - 1)
            return -1 if checked is None else checked

        return bool(core.upload_trace(os.fsencode(os.path.abspath(found)), told("epoch", epoch),
                                      told("first_batch", first_batch), told("last_batch", last_batch), False))  # fmt: skip

    def close(self, timeout: float | None = None) -> bool:
        """Ends it, and waits until all of it is stored by the master, at most `timeout` seconds (STEPWELL_EXIT_WAIT,
        else 5). True = it is; again: False."""
        wait_ms = core.exit_wait_ms() if timeout is None else _checks.seconds("timeout", timeout)
        with self._ending:
            return self._end(wait_ms)

    def _end(self, wait_ms: int) -> bool:
        until = time.monotonic() + wait_ms / 1000
        self._await_traces(wait_ms / 1000)
        with self._lock:
            if self._is_closed:
                return False
            self._is_closed = True
            if self._is_on:
                self._leave(max(0.0, until - time.monotonic()))
            _hooks_door.tell("run_ends")
            closings, unknown_count = self._closings.take(), self._closings.unknown_count
        if closings and are_stored_within(closings, max(0, round((until - time.monotonic()) * 1000))):
            self._is_stored, self._unknown_count = unknown_count == 0, unknown_count
        was_never_due = self._schedule is not None and self._window_count == 0 and not is_disabled()
        if was_never_due and self._options["shows"] and self._pid == os.getpid():
            say("stepwell: nothing is recorded: no window of the schedule came; it follows loops over run.steps, those of "
                "stepwell.integrations, and else those over a DataLoader where torch is hooked")  # fmt: skip
        if self._was_recorded and self._options["shows"] and self._pid == os.getpid() and not is_quiet():
            try:
                self._show_end()
            except Exception as error:  # of an interpreter that ends, say
                say(f"stepwell: the end of the run is not shown: {described(error)}")
        return self._is_stored

    def _await_traces(self, wait_s: float | None = None) -> None:
        """Not of a signal's handler, say, that came while this thread has the lock: who writes them waits for it."""
        if not self._lock._is_owned():
            _capture_door.await_traces(wait_s)

    def _close_within(self, wait_ms: int) -> None:
        """Another thread may close it, or hang in the file system."""
        until = time.monotonic() + wait_ms / 1000
        if not self._ending.acquire(timeout=wait_ms / 1000):
            os.putenv("STEPWELL_EXIT_WAIT", "0")  # the recorder's own end would wait for that thread once more
            return
        try:
            self._await_traces(max(0.0, until - time.monotonic()))
            if not self._lock.acquire(timeout=max(0.0, until - time.monotonic())):
                os.putenv("STEPWELL_EXIT_WAIT", "0")
                return
            try:
                self.close(max(0.0, until - time.monotonic()))
            finally:
                self._lock.release()
        finally:
            self._ending.release()

    def __enter__(self) -> Run:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __reduce__(self) -> tuple[object, tuple[()]]:
        """A spawned process has the run that it opens itself, or one that records nothing."""
        return _of_this_process, ()

    def _follow(self, place: Place) -> bool:
        """Switches as the schedule says; True = it is on since now."""
        from stepwell import _schedule

        if self._schedule is None or self._is_closed:
            return False
        try:
            is_wanted = _schedule.action_of(self._schedule(place)).records
        except Exception as error:
            self._schedule, is_wanted = None, True
            core.follow_schedule(False)
            warn(f"stepwell: recording goes on without its schedule: {described(error)}")
        if is_wanted == self._is_on:
            return False
        if not is_wanted:
            self.off()
            return False
        self._window_count += 1
        self.on()
        return True

    # --- with the lock held ---

    def _open(self) -> None:
        options: dict[str, Any] = self._options
        given: dict[str, Any] = {key: os.fsencode(value) if key in _PATHS and value is not None else value
                                 for key, value in options.items()}  # fmt: skip
        self._is_on = True  # before it is: an interrupt between the two would leave it open
        state = core.open(*(given[key] for key in _OPEN_ORDER))
        if _STATES[state] not in ("recording", "memory only"):
            return
        message = core.message()
        # Said once, not at each on(); that of an offline run comes with its end.
        if message and not message.startswith("offline:") and not self._was_recorded:
            from stepwell import _identity

            say(f"stepwell: {message}{_identity.built_without(message)}")
        self._was_recorded = True
        core.capture_by(_capture_door.tend)

    def _leave(self, wait_s: float = 0.0, is_switched_off: bool = False) -> bool:
        """What was recorded until now is waited for by flush() and close(). False = nothing was open."""
        _hooks_door.tell("recording_ends")
        _capture_door.recording_ends(wait_s)
        self._last_message = core.message()
        self._is_stored = False
        try:
            return self._closings.leave(is_switched_off)
        finally:
            # Else an interrupt came before, and it is on still; or a signal's handler has left it.
            if self._is_on and core.state() not in (1, 2):
                self._is_on = False
                self._dropped_count += core.dropped_count()
                self._take_tally()  # of what other threads did until it was closed, too

    def _take_tally(self) -> None:
        steps, steps_ns, paths = core.take_tally()
        self._steps += steps
        self._steps_ns += steps_ns
        for path, ns, count in paths:
            self._add_time(path, ns, count)

    def _add_time(self, path: str, ns: int, count: int) -> None:
        """Of steps of the tallied thread, which was told as a series, not as a scope."""
        before = self._paths.get(path, (0, 0))
        self._paths[path] = (before[0] + ns, before[1] + count)

    def _show_end(self) -> None:
        from stepwell import _closing, _identity, _page

        options: dict[str, Any] = self._options
        page = _page.link(self.trial, options["project"], options["server"]) if self._is_stored else ""
        is_late = not self._is_stored and not self._last_message and self._unknown_count == 0
        ending = _closing.ending(self.trial, self._is_stored, self._last_message, page, unknown_count=self._unknown_count,
                                 absent=_identity.absent_server(options["server"]) if is_late else "",
                                 spool_dir=_identity.spool_root(options["spool_dir"]),
                                 server=_identity.named_server(options["server"]), has_traces=_identity.uploads_traces())  # fmt: skip
        said = _closing.lines(self._steps, self._steps_ns, self._paths, ending, self._dropped_count)
        said[-1:-1] = _hooks_door.lines_at_end(self._steps > 0, {path.rpartition("/")[2] for path in self._paths})
        say("\n".join(said))


# Of the extension's open().
_OPEN_ORDER = (
    "spool_dir", "server", "project", "trial", "attempt_key", "token", "rank", "world_size", "labels", "agent",
    "start_agent", "system_metrics", "interval_us", "groups", "without", "with_",
)  # fmt: skip
_PATHS = ("spool_dir", "agent")

_opening = RLock()
_run: Run | None = None


def init(
    *,
    trial: str | None = None,
    project: str | None = None,
    interval: float | None = None,
    groups: str | Iterable[str] | None = None,
    without: str | Iterable[str] | None = None,
    with_: str | Iterable[str] | None = None,
    labels: Mapping[str, str] | None = None,
    server: str | None = None,
    spool_dir: str | os.PathLike[str] | None = None,
    attempt_key: str | None = None,
    token: str | None = None,
    rank: int | None = None,
    world_size: int | None = None,
    agent: str | os.PathLike[str] | None = None,
    start_agent: bool = True,
    system_metrics: bool = True,
    schedule: Callable[[Place], object] | None = None,
    hooks: bool = True,
) -> Run:
    """Opens the run of this process, or hands out the one that is open. What is not given is taken from the
    environment (docs/environment.md). Wrong options raise ValueError or TypeError, and nothing else does."""
    options: dict[str, object] = {
        "trial": _checks.trial(trial),
        "project": _checks.name("project", project),
        "interval_us": _checks.interval_us(interval),
        "groups": _checks.words("groups", groups),
        "without": _checks.words("without", without),
        "with_": _checks.words("with_", with_),
        "labels": _checks.labels(labels, of_series=False),
        "server": _checks.server(server),
        "spool_dir": _checks.path("spool_dir", spool_dir),
        "attempt_key": _checks.name("attempt_key", attempt_key),
        "token": _checks.token(token),
        "rank": _checks.number("rank", rank, 0, 2**31 - 1),
        "world_size": _checks.number("world_size", world_size, 1, 2**31 - 1),
        "agent": _checks.path("agent", agent),
        "start_agent": _checks.flag("start_agent", start_agent),
        "system_metrics": _checks.flag("system_metrics", system_metrics),
    }
    if schedule is not None:
        from stepwell import _schedule

        _schedule.checked(schedule)
    _checks.flag("hooks", hooks)
    global _run
    with _opening:
        found = open_run()
        if hooks and not (found is not None and found._refuses_hooks):
            _hooks_door.install(True)
        if found is not None:
            ignored = _checks.ignored(options, found._options)
            if schedule is not None and schedule not in (found._schedule, found._given_schedule):
                ignored.append("schedule")
            if not hooks and _hooks_door.are_in():
                ignored.append("hooks")
            if ignored:
                warn(f"stepwell: trial {found.trial!r} is open already, and goes on; ignored: {', '.join(ignored)}")
            return found
        if not hooks:  # not of a run that is open: its steps go on
            _hooks_door.install(False)
        if _run is not None and _run._is_on and _run._pid == os.getpid():
            _run._leave()  # an interrupt ended its close
        run = Run(_resolved(options))
        core.reset()
        run._schedule = run._given_schedule = schedule
        run._refuses_hooks = not hooks
        _hooks_door.tell("run_begins", schedule is not None)
        _parts.load()
        try:
            _run = run
            if schedule is None:  # else its steps switch it on
                run.on()
            _close_with_child()
            run._is_handed_out = True
            return run
        except BaseException:
            run._is_closed = True  # nobody has it
            raise


def _close_with_child() -> None:
    """One that multiprocessing forked ends without atexit."""
    process, util = sys.modules.get("multiprocessing.process"), sys.modules.get("multiprocessing.util")
    if process is not None and util is not None and process.parent_process() is not None:
        util.Finalize(None, _close_at_exit, exitpriority=-1)


def open_run() -> Run | None:
    """That of this process, not one that it was forked with."""
    return _run if _run is not None and not _run._is_closed and _run._pid == os.getpid() else None


def init_alone() -> Run:
    """For an integration, which tells itself what hooks would see, under the same names: those of `stepwell run` stay."""
    with _opening:
        run = open_run()
        if run is None:
            run = init(hooks=_hooks_door.are_in())
            run._refuses_hooks = False  # nobody said so
        return run


def is_any_opened() -> bool:
    """By this process, or by the one that it was forked from."""
    return _run is not None and _run._is_handed_out


def _resolved(options: dict[str, object]) -> dict[str, object]:
    """What nobody said."""
    from stepwell import _identity

    rank, world_size = _identity.place(options["rank"], options["world_size"])  # type: ignore[arg-type]
    options["trial"] = _identity.trial_name(options["trial"])  # type: ignore[arg-type]
    options["attempt_key"] = _identity.attempt_key(options["attempt_key"])  # type: ignore[arg-type]
    options["agent"] = _identity.agent(options["agent"])  # type: ignore[arg-type]
    if not is_absent:  # nothing is sent, and the system may lack what is asked
        options["server"] = _identity.server(
            options["server"],  # type: ignore[arg-type]
            options["spool_dir"],  # type: ignore[arg-type]
            bool(options["start_agent"]),
        )
    options["shows"] = _identity.rank(rank) == 0
    options["rank"] = -1 if rank is None else rank
    options["world_size"] = -1 if world_size is None else world_size
    return options


def _of_this_process() -> Run:
    if _run is not None:
        return _run
    run = Run({key: None for key in _OPEN_ORDER} | {"shows": False})
    run._is_closed = True
    return run


_is_exiting = False


def _close_at_exit() -> None:
    global _is_exiting
    _is_exiting = True
    # That of a forked child is its parent's: the recorder closes the child's part by itself.
    if _run is not None and _run._pid == os.getpid():
        _run._close_within(core.exit_wait_ms())


def _after_fork_in_child() -> None:
    """A lock that another thread held at the fork would stay locked in the child for ever."""
    global _opening
    _opening = RLock()
    if _run is not None:
        _run._lock, _run._ending = RLock(), RLock()
    core.after_fork()  # with its parent's loops and times
    _capture_door.after_fork()


atexit.register(_close_at_exit)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
