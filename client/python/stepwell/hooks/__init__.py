"""What is seen of a training without a line in it: put into torch, now or when the program imports it.

`stepwell run` and `stepwell.init()` install the same. docs/python.md says what is seen.
"""

from __future__ import annotations

import os
import sys

from stepwell import _torch_watch
from stepwell._load import core
from stepwell._tell import described, say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from stepwell.hooks._device import Device
    from stepwell.hooks._torch import TorchHooks

_torch_hooks: TorchHooks | None = None
_opens_runs = False
_is_installed = False
_is_refused = False


def are_wanted() -> bool:
    return os.environ.get("STEPWELL_HOOKS", "1") not in ("", "0") and core.Hooked is not None


def install(open_run: Callable[[], bool] | None = None) -> None:
    """They are in from then on, until refuse(); never raises. Without open_run it is the program that wants them, which may
    have wanted none before."""
    global _is_installed, _is_refused
    was_refused = _is_refused
    if open_run is None:
        _is_refused = False
    if _is_refused or not are_wanted() or (_is_installed and not was_refused):
        return
    try:
        if _is_installed and _torch_hooks is not None:
            _torch_hooks.put_again()
            _torch_watch.put()
            return
        is_watched, _is_installed = _is_installed, True
        torch = sys.modules.get("torch")
        if torch is not None and hasattr(torch, "optim"):  # else it is being imported
            _put_into(torch, open_run)
            return
        if is_watched:
            return
        from stepwell.hooks import _watch

        _watch.on_import("torch", lambda: _put_after_import(open_run), _say_nothing_is_hooked)
    except Exception as error:
        _say_nothing_is_hooked(error)


def _put_after_import(open_run: Callable[[], bool] | None) -> None:
    """Within the program's own import: what it raised would be raised there."""
    try:
        if _is_refused:
            return
        torch = sys.modules["torch"]
        if not hasattr(torch, "optim"):
            raise ImportError(f"{getattr(torch, '__file__', torch)} is no torch that is known")
        _put_into(torch, open_run)
    except Exception as error:
        _say_nothing_is_hooked(error)


def _say_nothing_is_hooked(error: Exception) -> None:
    say(f"stepwell: nothing of torch is hooked: {described(error)}")


def _put_into(torch: Any, open_run: Callable[[], bool] | None) -> None:
    global _torch_hooks
    from stepwell.hooks._torch import TorchHooks

    _torch_hooks = TorchHooks(torch, open_run)
    _torch_watch.put()


def refuse() -> None:
    """The program says that it wants none, also of `stepwell run`; never raises."""
    global _is_refused
    _is_refused = True
    if _torch_hooks is not None:
        try:
            _torch_hooks.remove()
            _torch_watch.remove()
        except Exception as error:
            say(f"stepwell: hooks of torch are not removed: {described(error)}")


def are_in() -> bool:
    return _torch_hooks is not None and not _is_refused


def begin_with_torch() -> None:
    """Of `stepwell run`: torch was imported, and a run is opened at the first sign of a training."""
    global _opens_runs
    _opens_runs = True
    install(_open_run)


def _open_run() -> bool:
    from stepwell import _run

    if _run.is_any_opened():
        return True
    _run.init(**_place(sys.modules["torch"]))
    return core.state() != 0


def _place(torch: Any) -> dict[str, Any]:
    """Of a process that a launcher told of its rank in another way than by variables."""
    distributed = getattr(torch, "distributed", None)
    if os.environ.get("RANK") or os.environ.get("SLURM_PROCID") or distributed is None:
        return {}
    if not distributed.is_available() or not distributed.is_initialized():
        return {}
    return {"rank": distributed.get_rank(), "world_size": distributed.get_world_size()}


def run_begins(has_schedule: bool) -> None:
    """Before anything of it is recorded; never raises."""
    core.follow_schedule(has_schedule)
    if _torch_hooks is not None:
        _torch_hooks.run_begins()
    device = _existing_device()
    if device is not None:
        device.run_begins()


def recording_ends() -> None:
    """Before the recorder closes; never raises."""
    device = _existing_device()
    if device is not None:
        device.recording_ends()


def run_ends() -> None:
    """After its recorder has closed for good; never raises."""
    core.follow_schedule(False)
    device = _existing_device()
    if device is not None:
        device.run_ends()


def _existing_device() -> Device | None:
    module = sys.modules.get("stepwell.hooks._device")
    return None if module is None else module.existing()


def lines_at_end(has_steps: bool, names: set[str]) -> list[str]:
    """What no hook saw; `names` are the scopes of its steps. Who opens a run himself may record the rest himself."""
    from stepwell.hooks import _not_seen

    device = _existing_device()
    given_up = [] if device is None else _not_seen.given_up_lines(device.given_up_count)
    if _torch_hooks is None or _is_refused:
        return given_up
    from stepwell.hooks import _torch

    given_up = _not_seen.missed_lines(_torch_hooks.hooks, names) + given_up
    if has_steps and not _opens_runs:
        return _not_seen.hidden_lines(_torch_hooks.hooks) + given_up
    return _not_seen.lines(_torch_hooks.hooks, has_steps, _torch.EXPECTED) + given_up
