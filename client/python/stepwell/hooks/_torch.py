"""TorchHooks: what a training of torch's does, seen from outside of it.

A batch is what a DataLoader gives on the main thread while gradients are enabled. Its step reaches from one ask to the
next and holds the fetch of its own batch. In it `train_batch` reaches from the first forward or backward pass, where
no scope of the program's is open, to the end of the optimizer's step, or of the training step.
"""

from __future__ import annotations

import functools
import sys
import threading
import time

from stepwell._load import core
from stepwell.hooks import _compiler, _device, _torch_script
from stepwell.hooks._ahead import AheadLoaders
from stepwell.hooks._allocator import Allocator
from stepwell.hooks._device import Device
from stepwell.hooks._device_times import DeviceTimes
from stepwell.hooks._hook import Hook
from stepwell.hooks._transfer import direction

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

EXPECTED = ("the DataLoader", "forward", "backward", "the optimizer's step")
_LOOP = "_stepwell_loop"  # in a DataLoader's iterator, where FetchCall looks for it
_REDUCTIONS = ("all_reduce", "reduce", "all_gather", "all_gather_into_tensor", "all_gather_object", "gather",
               "gather_object")  # fmt: skip
_DURATION = 3
_RECORDING = (1, 2)  # core.state(): into the spool, or into memory alone


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
        self._evaluation_series: Any = None
        self._device = _device.of(torch)
        self._device.found = self._device_is_found
        self._recording = core.Recording()
        self._loader = Hook("the DataLoader")
        self._ahead_hook = Hook("Accelerate's loaders")
        self._fetch: Any = None
        self._ahead = AheadLoaders(self._ahead_hook, self._is_training, self._look_at_batch)
        self._optimizer = Hook("the optimizer's step")
        self._evaluation = Hook("an evaluation's DataLoader")
        self.hooks = [self._loader, self._evaluation, self._device.times_hook, self._device.memory_hook]
        for put in (self._put_loader, self._put_passes, self._put_optimizer, self._put_scheduler, self._put_transfers,
                    self._put_checkpoints, self._put_reductions):  # fmt: skip
            hook = put()
            if hook not in self.hooks:
                self.hooks.append(hook)
        core.ask_for_worker(lambda: _is_worker(torch))
        _torch_script.tell(self.hooks)
        _compiler.keep_out(torch, (TorchHooks, Hook, Device, DeviceTimes, Allocator, direction))
        if open_run is not None:
            core.await_hooks(True)

    def remove(self) -> None:
        """Where the program wants none: what was there is there again, and Accelerate's loaders do as before. For good, for
        `torch` stays."""
        self._open_run = None
        core.await_hooks(False)
        self._device.found = lambda: None
        self._ahead_hook.trouble = self._ahead_hook.trouble or "not wanted"
        for hook in self.hooks:
            if hook not in (self._device.times_hook, self._device.memory_hook):  # which scopes of the program's have, too
                hook.trouble = hook.trouble or "not wanted"
                hook.put_back()

    # --- where they are put; a torch that lacks one has no such hook ---

    def _try(self, hook: Hook, put: Callable[[], None]) -> Hook:
        try:
            put()
        except Exception as error:  # another torch than those that are known
            hook.fail(error)
        return hook

    def _put_loader(self) -> Hook:
        def put() -> None:
            from torch.utils.data.dataloader import _BaseDataLoaderIter  # type: ignore[import-not-found]

            self._fetch = self._loader.handle(core.FetchCall(self._next_batch, self._torch.is_grad_enabled))
            self._loader.replace(_BaseDataLoaderIter, "__next__", self._fetch)
            self._ahead.put()

        return self._try(self._loader, put)

    def _put_passes(self) -> Hook:
        forward, backward = Hook("forward"), Hook("backward")
        self.hooks += [forward, backward]
        if "torch._dynamo" in sys.modules:
            # It has taken the call of a module for what it knows, and would not compile through another.
            forward.fail(RuntimeError("torch._dynamo was imported before the hooks were put in"))
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
            hook.replace(self._torch, "save", self._timed(hook, "save_checkpoint"))
            hook.replace(self._torch, "load", self._timed(hook, "load_checkpoint"))

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
            # The first one is a part of its construction.
            is_first = bool(args) and getattr(args[0], "_step_count", 1) == 0
            return original(*args, **keywords) if is_first else timed(original, *args, **keywords)

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

    # --- batches ---

    def _next_batch(self, original: Any, iterator: Any) -> Any:
        if self._ahead.is_asked:
            return self._ahead.fetch(original, iterator)
        loop = None
        is_eval = False
        try:
            if not self._loader.trouble and threading.current_thread() is threading.main_thread():
                is_eval = not self._torch.is_grad_enabled()
                if not is_eval:
                    loop = self._loop_of(iterator)
        except Exception as error:
            self._loader.fail(error)
        if loop is not None:
            return self._next_of(loop, original, iterator)
        if is_eval and not core.is_fetching():
            return self._next_of_evaluation(original, iterator)
        return original(iterator)

    def _loop_of(self, iterator: Any) -> Any:
        if core.is_fetching():  # of a loop over run.steps, which times it itself
            return None
        if self._open_run is not None and not self._opens():
            return None
        loop = vars(iterator).get(_LOOP)
        # Where workers persist the next epoch has the same iterator, which knows how many it has given in it.
        if loop is None or getattr(iterator, "_num_yielded", 1) == 0:
            vars(iterator).pop(_LOOP, None)
            loop = None  # the last one's is over, also where `break` left a step open
            # Each loader has a sampler of its own, which its iterators hold.
            loop = vars(iterator)[_LOOP] = core.hooked_loop(getattr(iterator, "_index_sampler", None))
        return loop

    def _next_of(self, loop: Any, original: Any, iterator: Any) -> Any:
        items = core.next_by(loop, original, iterator)
        self._look_at_batch()
        return items

    def _look_at_batch(self) -> None:
        self._loader.seen_count += 1
        self._look_at_device(core.batch())

    def _is_training(self) -> bool:
        """What is asked for a batch now, and is recorded."""
        if self._loader.trouble or core.is_fetching() or not self._torch.is_grad_enabled():
            return False
        if self._open_run is not None:
            return self._opens()
        return core.state() in _RECORDING

    def _next_of_evaluation(self, original: Any, iterator: Any) -> Any:
        begin_us, begin = time.time_ns() // 1000, time.perf_counter()
        items = core.fetch_by(original, iterator)
        if self._evaluation.trouble:
            return items
        try:
            took = time.perf_counter() - begin
            if self._evaluation_series is None:
                self._evaluation_series = core.define_series(
                    "timing", "dataloader_next", "seconds", _DURATION, {"loader": "eval"}
                )
            core.record_at(self._evaluation_series, core.batch(), begin_us, took)
            self._evaluation.seen_count += 1
        except Exception as error:
            self._evaluation.fail(error)
        return items

    # --- the GPU ---

    def _look_at_device(self, batch: int) -> None:
        is_used = self._device.look(batch)
        self._fetch.is_plain = not is_used and not self._loader.trouble

    def _device_is_found(self) -> None:
        """From now on calls have handlers, which give it events."""
        for hook in self.hooks:
            hook.forbid_plain()
