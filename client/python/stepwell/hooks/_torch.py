"""TorchHooks: what a training of torch's does, seen from outside of it.

A batch is what a DataLoader gives on the main thread while gradients are enabled. Its step reaches from one ask to the
next and holds the fetch of its own batch. In it `train_batch` reaches from the first forward or backward pass, where
no scope of the program's is open, to the end of the optimizer's step, or of the training step.
"""

from __future__ import annotations

import functools
import sys

from stepwell._load import core
from stepwell.hooks import _compiler, _device, _torch_script
from stepwell.hooks._ahead import AheadLoaders
from stepwell.hooks._allocator import Allocator
from stepwell.hooks._batches import Batches
from stepwell.hooks._device import Device
from stepwell.hooks._device_times import DeviceTimes
from stepwell.hooks._hook import Hook
from stepwell.hooks._kept import KeptIterator
from stepwell.hooks._planned import Planner
from stepwell.hooks._transfer import direction

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_LATE = ("torch's compiler was imported before stepwell.init(), which the first optimizer does; call init() before that, or "
         "time it with run.scope('forward')")  # fmt: skip
EXPECTED = ("the DataLoader", "forward", "backward", "the optimizer's step")
_COMPILER = "torch._dynamo"
_REDUCTIONS = ("all_reduce", "reduce", "all_gather", "all_gather_into_tensor", "all_gather_object", "gather",
               "gather_object")  # fmt: skip


def _is_worker(torch: Any) -> bool | None:
    """A worker of a DataLoader's; None = it is none for good. What it calls is a part of a fetch."""
    if torch.utils.data.get_worker_info() is not None:
        return True
    process = sys.modules.get("multiprocessing.process")
    return None if process is None or process.parent_process() is None else False


class TorchHooks:
    """`open_run` opens one at the first sign of a training, and says whether it is open; None = it is there, or none
    is wanted. Made once in a process, for `torch` stays."""

    def __init__(self, torch: Any, open_run: Callable[[], bool] | None) -> None:
        self._torch = torch
        self._open_run = open_run
        self._device = _device.of(torch)
        self._device.found = self._device_is_found
        self._recording = core.Recording()
        self._batches = Batches(torch, lambda: self._open_run is not None, self._opens, self._look_at_device)
        self._optimizer = Hook("the optimizer's step")
        self._forward = Hook("forward")
        self._hook_optimizers: Callable[[], None] = lambda: None
        batches = self._batches
        self.hooks = [batches.hook, batches.evaluation_hook, self._device.times_hook, self._device.memory_hook]
        for put in (self._put_loader, self._put_passes, self._put_optimizer, self._put_scheduler, self._put_transfers,
                    self._put_checkpoints, self._put_reductions):  # fmt: skip
            hook = put()
            if hook not in self.hooks:
                self.hooks.append(hook)
        core.ask_for_worker(lambda: _is_worker(torch))
        _torch_script.tell(self.hooks)
        _compiler.keep_out(torch, (TorchHooks, Batches, AheadLoaders, KeptIterator, Planner, Hook, Device, DeviceTimes,
                                   Allocator, direction))  # fmt: skip
        if open_run is not None:
            core.await_hooks(True)

    def remove(self) -> None:
        """Where the program wants none: what was there is there again, and Accelerate's loaders do as before."""
        self._open_run = None
        core.await_hooks(False)
        self._device.found = lambda: None
        for hook in self._own_hooks():
            hook.refuse()

    def put_again(self) -> None:
        """For a run that wants them after one that wanted none."""
        self._device.found = self._device_is_found
        for hook in self._own_hooks():
            if hook is self._forward and _COMPILER in sys.modules:
                hook.leave_out(_LATE)  # meanwhile it took the call of a module for what it knows
            hook.put_again()
        self._hook_optimizers()

    def run_begins(self) -> None:
        """At the next batch it is looked again, for it may have a schedule."""
        for hook in (self._batches.ahead_hook, *self.hooks):
            hook.run_begins()

    def _own_hooks(self) -> list[Hook]:
        """Without those that scopes of the program have, too."""
        shared = (self._device.times_hook, self._device.memory_hook)
        return [self._batches.ahead_hook, *(hook for hook in self.hooks if hook not in shared)]

    # --- where they are put; a torch that lacks one has no such hook ---

    def _try(self, hook: Hook, put: Callable[[], None]) -> Hook:
        try:
            put()
        except Exception as error:  # another torch than those that are known
            hook.fail(error)
        return hook

    def _put_loader(self) -> Hook:
        return self._try(self._batches.hook, self._batches.put)

    def _put_passes(self) -> Hook:
        forward, backward = self._forward, Hook("backward")
        self.hooks += [forward, backward]
        if _COMPILER in sys.modules:
            # It has taken the call of a module for what it knows, and would not compile through another.
            forward.leave_out(_LATE)
        else:
            self._try(forward, lambda: forward.replace(self._torch.nn.Module, "__call__", self._timed(
                forward, "forward", is_work=True)))  # fmt: skip
        self._try(backward, lambda: backward.replace(self._torch.autograd, "backward", self._timed(
            backward, "backward", is_work=True, is_training=True)))  # fmt: skip
        return forward

    def _put_optimizer(self) -> Hook:
        handler = self._timed(self._optimizer, "optimizer_step", is_work=True, is_training=True, ends_work=True)

        def hook_step_of(kind: Any) -> None:
            if "step" in vars(kind):
                self._optimizer.replace(kind, "step", handler, _compiler.question(self._torch))

        def hook_all(kind: Any) -> None:
            for more in kind.__subclasses__():
                if getattr(getattr(more, "step", None), "hooked", False):  # torch's own mark: one was made of it
                    hook_step_of(more)
                hook_all(more)

        def put() -> None:
            optimizer = self._torch.optim.Optimizer
            make = optimizer.__init__

            # A class has its step, and torch's own wrapper around it, once its first optimizer is made.
            @functools.wraps(make)
            def init(made: Any, /, *args: Any, **keywords: Any) -> None:
                make(made, *args, **keywords)
                try:
                    if not self._optimizer.trouble:
                        hook_step_of(type(made))
                except Exception as error:
                    self._optimizer.fail(error)

            hook_all(optimizer)
            optimizer.__init__ = init
            self._hook_optimizers = lambda: hook_all(optimizer)

        return self._try(self._optimizer, put)

    def _put_scheduler(self) -> Hook:
        hook = Hook("step_lr_schedulers")

        def put() -> None:
            module = self._torch.optim.lr_scheduler
            handler = self._scheduler_step(hook)  # of all, so that one within another's is that one's
            for kind in list(vars(module).values()):
                if isinstance(kind, type) and kind.__module__ == module.__name__ and "step" in vars(kind):
                    hook.replace(kind, "step", handler)

        return self._try(hook, put)

    def _put_transfers(self) -> Hook:
        hook = Hook("transfers")

        def put() -> None:
            tensor, nn = self._torch.Tensor, self._torch.nn
            # Of no class of the program's own, whose __torch_function__ would be asked.
            kinds = tuple(kind for kind in (tensor, getattr(nn, "Parameter", None)) if kind is not None)

            device = getattr(self._torch, "device", None)
            host = None if device is None else device("cpu")

            def transfer(which: str, name_of: Callable[..., str]) -> Any:
                return core.TransferCall(self._transfer(hook, name_of), which, kinds, host,
                                         getattr(self._torch, "dtype", None))  # fmt: skip

            hook.replace(tensor, "to", transfer("by argument", functools.partial(direction, kinds)))
            hook.replace(tensor, "cuda", transfer("to", lambda *_: "to_device"))
            for name in ("cpu", "item", "tolist"):
                hook.replace(tensor, name, transfer("from", lambda *_: "from_device"))
            hook.replace(tensor, "pin_memory", transfer("any", lambda *_: "pin_memory"))

        return self._try(hook, put)

    def _put_checkpoints(self) -> Hook:
        hook = Hook("checkpoints")

        def put() -> None:
            hook.replace(self._torch, "save", self._after_kept(self._timed(hook, "save_checkpoint")))
            hook.replace(self._torch, "load", self._after_kept(self._timed(hook, "load_checkpoint")))

        return self._try(hook, put)

    def _put_reductions(self) -> Hook:
        hook = Hook("reduce_metrics")

        def put() -> None:
            distributed = getattr(self._torch, "distributed", None)
            if distributed is None or not distributed.is_available():
                return
            handler = self._reduction(hook)
            for name in _REDUCTIONS:
                hook.replace(distributed, name, handler)

        return self._try(hook, put)

    # --- what they do: nothing of ours is raised, and what is called in between is theirs ---

    def _timed(self, hook: Hook, name: str, *, is_work: bool = False, is_training: bool = False,
               ends_work: bool = False) -> Callable[..., Any]:  # fmt: skip
        scope = self._recording.scope(name)
        is_grad_enabled = getattr(self._torch, "is_grad_enabled", None) if is_work else None

        def handler(original: Any, /, *args: Any, **keywords: Any) -> Any:
            token = self._begin(hook, name, is_work, is_training)
            # From now on without this handler, but where it gives the GPU events.
            call.is_plain = hook.seen_count > 0 and not hook.trouble and (
                not is_work or (not self._device.has_times and is_grad_enabled is not None))  # fmt: skip
            try:
                if core.is_innermost(scope):  # the program's, or an integration's, which says the same
                    return original(*args, **keywords)
                with scope:
                    return original(*args, **keywords)
            finally:
                self._end(token, ends_work)

        call = hook.handle(core.TimedCall(handler, scope, is_grad_enabled, ends_work))
        return call  # type: ignore[no-any-return]

    def _begin(self, hook: Hook, name: str, is_work: bool, is_training: bool) -> Any:
        try:
            if hook.trouble:
                return None
            if self._open_run is not None and not (is_training and self._opens()):
                return None
            hook.seen_count += 1
            if not is_work:
                return None
            if self._torch.is_grad_enabled():
                core.begin_work()
        except Exception as error:
            hook.fail(error)
        return self._begin_on_device(name)

    def _begin_on_device(self, name: str) -> Any:
        return None if core.batch() < 0 else self._device.begin(name)

    def _end(self, token: Any, ends_work: bool) -> None:
        self._device.end(token)
        if ends_work:
            core.end_work()

    def _opens(self) -> bool:
        """Opens the run that others record into, where this is the training's process."""
        open_run, is_open = self._open_run, False
        try:
            self._open_run = None
            core.await_hooks(False)
            if open_run is not None and self._torch.utils.data.get_worker_info() is None:
                is_open = open_run()
        except Exception:
            raise
        except BaseException:  # Ctrl-C: at the next sign of a training, then
            self._open_run = open_run
            core.await_hooks(open_run is not None)
            raise
        return is_open

    def _scheduler_step(self, hook: Hook) -> Callable[..., Any]:
        timed = self._timed(hook, "step_lr_schedulers")

        def handler(original: Any, /, *args: Any, **keywords: Any) -> Any:
            self._batches.leave_kept()
            # The first one is a part of its construction.
            is_first = bool(args) and getattr(args[0], "_step_count", 1) == 0
            return original(*args, **keywords) if is_first else timed(original, *args, **keywords)

        return handler

    def _after_kept(self, timed: Callable[..., Any]) -> Callable[..., Any]:
        """What often follows a loop that was left, and is called seldom."""

        def handler(original: Any, /, *args: Any, **keywords: Any) -> Any:
            self._batches.leave_kept()
            return timed(original, *args, **keywords)

        return handler

    def _transfer(self, hook: Hook, which: Callable[..., str]) -> Callable[..., Any]:
        timed = {name: self._timed(hook, name) for name in ("to_device", "from_device", "pin_memory")}

        def handler(original: Any, tensor: Any, /, *args: Any, **keywords: Any) -> Any:
            name = ""
            try:
                if not hook.trouble:
                    name = which(tensor, args, keywords)
            except Exception as error:
                hook.fail(error)
            if not name:
                return original(tensor, *args, **keywords)
            return timed[name](original, tensor, *args, **keywords)

        return handler

    def _reduction(self, hook: Hook) -> Callable[..., Any]:
        timed = self._timed(hook, "reduce_metrics")

        def handler(original: Any, /, *args: Any, **keywords: Any) -> Any:
            # Within a pass they are gradients' and parameters', outside of a step a launcher's or a model's.
            if core.scope_path() != 0 or core.batch() < 0:
                return original(*args, **keywords)
            return timed(original, *args, **keywords)

        return handler

    # --- the GPU ---

    def _look_at_device(self, batch: int) -> None:
        self._batches.may_go_on_alone(not self._device.look(batch))

    def _device_is_found(self) -> None:
        """From now on calls have handlers, which give it events."""
        for hook in self.hooks:
            hook.forbid_plain()
