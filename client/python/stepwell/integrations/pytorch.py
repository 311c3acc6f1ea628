"""A training loop of PyTorch's that is one's own: its steps, its evaluation, and the timings of both by their names.

    from stepwell.integrations.pytorch import TrainingLoop

    training = TrainingLoop()
    for epoch in range(3):
        for batch_index, (inputs, targets) in training.steps(loader, epoch=epoch):
            with training.to_device:
                inputs, targets = inputs.to(device), targets.to(device)
            with training.train_batch:
                ...
            with training.step_lr_schedulers:
                scheduler.step()
        for inputs, targets in training.evaluate(eval_loader):
            ...
"""

from __future__ import annotations

from stepwell import _stepping
from stepwell.integrations._guard import guarded
from stepwell.integrations._training import ON_DEVICE, Training, samples_of, uses_device
from stepwell.integrations._watch import watch_items

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from stepwell._core import Scope
    from stepwell._device_scope import DeviceScope
    from stepwell._run import Run

_TIMINGS = ("to_device", "train_batch", "forward", "backward", "optimizer_step", "step_lr_schedulers", "from_device",
            "reduce_metrics")  # fmt: skip


class TrainingLoop:
    """`run` is the one that is open, else a new one."""

    def __init__(self, run: Run | None = None) -> None:
        self._training = Training(run)
        self._of_host: list[str] = []  # kept scopes that are on a GPU, too, once one is used: it may be first within one

    def steps(
        self, loader: Iterable[Any], *, epoch: int | None = None, start: int | None = None, batch_in_epoch: int = 0
    ) -> Iterator[tuple[int, Any]]:
        """Pairs of a batch's index and the batch, each a step, as Run.steps gives them; the fetch has the label
        loader=train. A training that resumes says `start` and `batch_in_epoch`."""
        training = self._training
        length = _stepping.length_of(loader)
        next_batch, within = start, batch_in_epoch
        loop, is_midway = _stepping.LoopEpoch(epoch), False

        def begin() -> None:
            if self._of_host:
                self._look_for_device()
            whole = None if length is None else batch_in_epoch + length
            training.fetch_begins(next_batch, epoch, within, whole, loop)

        def end(item: Any, is_found: bool) -> None:
            training.fetch_ends(samples_of(item) if is_found else None, is_found)
            training.step_ends()

        try:
            for item in watch_items(iter(loader), begin, end):
                yield training.batch, item
                next_batch, within = None, within + 1
        except GeneratorExit:
            is_midway = True  # in the batch that it was left in
            raise
        finally:
            training.leave_loop(loop, is_midway)

    def evaluate(self, loader: Iterable[Any]) -> Iterator[Any]:
        """Its batches; each fetch is timed, with the label loader=eval. In no step, where no loop is."""
        training = self._training
        yield from watch_items(iter(loader), training.eval_fetch_begins,
                               lambda item, is_found: training.eval_fetch_ends(is_found))  # fmt: skip

    @guarded
    def _look_for_device(self) -> None:
        if uses_device():
            for name in self._of_host:
                vars(self).pop(name, None)
            self._of_host.clear()

    def __getattr__(self, name: str) -> Scope | DeviceScope:
        """Of the timings to_device, train_batch, forward, backward, optimizer_step, step_lr_schedulers, from_device and
        reduce_metrics: `with training.to_device:`."""
        if name not in _TIMINGS:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        run = self._training.run
        scope: Scope | DeviceScope = run.scope(name)
        if name in ON_DEVICE:
            if uses_device():
                scope = run.device_scope(name)
            else:
                self._of_host.append(name)
        setattr(self, name, scope)
        return scope

    def __getstate__(self) -> dict[str, Any]:
        """A copy is a loop that has not begun, with scopes of its own."""
        kept = {name: value for name, value in vars(self).items() if name not in _TIMINGS}
        return {**kept, "_training": Training(self._training._given_run), "_of_host": []}

    def record(self, name: str, value: Any) -> None:
        self._training.run.record(name, value)
