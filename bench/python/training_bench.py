#!/usr/bin/env python3
"""What do hooks cost a real training of PyTorch's?

The same training step on a processor (a batch of 128 images of a DataLoader, forward and backward pass and optimizer's step of a
small convolutional net, one thread), with hooks as stepwell.init() puts them in, and without, in turns within one process; who
begins is left to chance. Each side asks a loader of its own, and which that is is drawn anew for each epoch: batches of one
loader lie better in memory than those of another. A class that was changed makes Python forget what it knew of the
methods of all its children, which no training does at each step: after each turn two images of a batch are trained, untimed, and then
64 MB are walked through, so that either side begins with caches that hold nothing of it. Now and then a pair is of nothing beside nothing: its interval says what the machine adds. As
bench/harm does it: the interval that holds the median of the pairs' differences with 95 %.

Who reads what was recorded: without `--agent` nobody does. The run is offline, and the bench empties the rings itself, untimed, at the
begin of each epoch: a figure of it is of the training's own calls alone. With `--agent` it is the agent of the build (STEPWELL_BIN, else
build/release/bin) on another processor than the training's, whose master does not answer, as bench/harm has it: its looks at the rings, the memory that
both touch and the files that it writes are in the figure. Each row says which of both it is of.

Before it, what the hooked calls of a step take by themselves, in microseconds: the same loop over a net of one weight, where each
call finds what 8 MB that are walked through before it have left in the caches. A step of a millisecond differs from the next one
by far less than one of a training does: some thousand pairs tell microseconds. `--calls`: that alone.
Needs torch (Debian: python3-torch); without it nothing is measured.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from python_bench import Rings, install

_ROOT = pathlib.Path(__file__).resolve().parents[2]
_READERS = {False: "the rings emptied by the bench itself, no agent", True: "an agent on another processor reads the rings"}
_READ_WAIT_S = 30.0
_UNREAD_MAX = 100  # what the step that is open has recorded stays until it ends


@contextmanager
def agent_beside(spool: pathlib.Path) -> Iterator[Callable[[], None]]:
    """An agent on another processor than this thread's, to which the latter is held. What this hands out waits until the agent
    has read what there is."""
    own = min(os.sched_getaffinity(0))
    others = set(range(os.cpu_count() or 1)) - {own}
    if not others:
        raise SystemExit("training_bench: --agent wants a second processor")
    program = pathlib.Path(os.environ.get("STEPWELL_BIN") or _ROOT / "build" / "release" / "bin") / "stepwell"
    os.sched_setaffinity(0, {min(others)})
    try:
        agent = subprocess.Popen([str(program), "agent", "--server", "127.0.0.1:9", "--spool-dir", str(spool)],
                                 stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip
    except OSError as error:
        raise SystemExit(f"training_bench: {error}: cmake --build --preset release --target stepwell") from error
    finally:
        os.sched_setaffinity(0, {own})

    def await_read() -> None:
        rings, end = Rings(spool), time.monotonic() + _READ_WAIT_S
        while rings.unread_count() > _UNREAD_MAX:
            if agent.poll() is not None or time.monotonic() > end:
                raise SystemExit("training_bench: the agent does not read the rings: these numbers are of no agent")
            time.sleep(0.05)

    try:
        yield await_read
    finally:
        agent.kill()
        agent.wait()


def median_interval(values: list[float]) -> tuple[float, float, float]:
    """Its lower end, the median, its upper end."""
    ordered, half = sorted(values), 1.96 * math.sqrt(len(values)) / 2

    def at(rank: float) -> float:
        return ordered[int(min(max(rank, 0), len(ordered) - 1))]

    middle = len(ordered) / 2
    return at(math.floor(middle - half)), at(middle), at(math.ceil(middle + half))


class Switch:
    """Puts hooks that are in out, and in again."""

    def __init__(self) -> None:
        from stepwell import hooks

        self._places = [place for hook in hooks._torch_hooks.hooks for place in hook._replaced]

    def turn(self, is_on: bool) -> None:
        for owner, name, original, put, is_own in self._places:
            if is_on or is_own:
                setattr(owner, name, put if is_on else original)
            elif name in vars(owner):
                delattr(owner, name)


_BATCH = 128
_CONTROL_EVERY = 8
# Memory of a step goes back to the system and comes anew with pages of zeros, unless malloc is told to keep it: a step of 32
# images took 22.9 ms so, and 9.9 with memory that is kept.
_KEEP_MEMORY = {"MALLOC_MMAP_THRESHOLD_": "1000000000", "MALLOC_TRIM_THRESHOLD_": "10000000000",
                "MALLOC_TOP_PAD_": "100000000"}  # fmt: skip


def _memory(size: int) -> bytearray:
    """Pages of its own: what nobody wrote to is one page of zeros, however much of it."""
    return bytearray(b"\1") * size


class Training:
    """One net, and two loaders: a step of hooks reaches from one ask of its loader to the next."""

    def __init__(self) -> None:
        import torch

        torch.manual_seed(0)
        nn = torch.nn
        self._model = nn.Sequential(nn.Conv2d(3, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 64, 3, padding=1, stride=2),
                                    nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(1024, 10))  # fmt: skip
        self._optimizer = torch.optim.SGD(self._model.parameters(), lr=0.001, momentum=0.9)
        self._loss = nn.functional.cross_entropy
        images = torch.utils.data.TensorDataset(torch.randn(8192, 3, 32, 32), torch.randint(0, 10, (8192,)))
        self._loaders = [torch.utils.data.DataLoader(images, batch_size=_BATCH) for _ in range(2)]
        self._batches = [iter(loader) for loader in self._loaders]
        self._others = _memory(64 << 20)

    def is_at_end(self) -> bool:
        return self._batches[0]._num_yielded == len(self._batches[0])

    def begin_epoch(self, place: int) -> None:
        self._batches[place] = iter(self._loaders[place])

    def warm(self, place: int) -> None:
        """What Python forgot is known again, and the processor's caches know nothing."""
        self._train(place, 2)
        self._others.find(0)

    def step(self, place: int) -> tuple[float, float]:
        """Seconds on the wall, and of the thread's processor time."""
        processor, begin = time.thread_time(), time.perf_counter()
        self._train(place, _BATCH)
        return time.perf_counter() - begin, time.thread_time() - processor

    def _train(self, place: int, count: int) -> None:
        images, wanted = next(self._batches[place])
        self._optimizer.zero_grad()
        self._loss(self._model(images[:count]), wanted[:count]).backward()
        self._optimizer.step()


_WALKED = 8 << 20


class Calls(Training):
    """The calls of such a step, and nothing that takes time but a walk through memory before each."""

    def __init__(self) -> None:
        import torch

        torch.manual_seed(0)
        self._model = torch.nn.Linear(1, 1)
        self._optimizer = torch.optim.SGD(self._model.parameters(), lr=0.001, momentum=0.9)
        values = torch.utils.data.TensorDataset(torch.randn(512, 1), torch.randn(512, 1))
        self._loaders = [torch.utils.data.DataLoader(values, batch_size=2) for _ in range(2)]
        self._batches = [iter(loader) for loader in self._loaders]
        self._others = _memory(_WALKED)

    def _train(self, place: int, count: int) -> None:
        walk = self._others.find
        walk(0)
        values, wanted = next(self._batches[place])
        self._optimizer.zero_grad()
        walk(0)
        loss = (self._model(values) - wanted).sum()
        walk(0)
        loss.backward()
        walk(0)
        self._optimizer.step()
        walk(0)


def row_of_calls(pairs: list[tuple[float, float]], nothing: list[tuple[float, float]], has_agent: bool = False) -> None:
    low, middle, high = median_interval([1e6 * (ours - theirs) for ours, theirs in pairs])
    control = median_interval([1e6 * (ours - theirs) for ours, theirs in nothing])
    step = 1e6 * sorted(theirs for _, theirs in pairs)[len(pairs) // 2]
    print(f"training.calls: {middle:.1f} us [{low:.1f}, {high:.1f}] of a step of {step:.0f}, nothing beside nothing "
          f"{control[1]:.1f} us [{control[0]:.1f}, {control[2]:.1f}]", file=sys.stderr)  # fmt: skip
    print(json.dumps({"name": "training.calls", "value": round(high, 2), "unit": "us",
                      "against": "the same calls without hooks, each after a walk through 8 MB, in turns; the upper end of the "
                                 "95 % interval of the median. 25 us are 0.05 % of the training's step of 50 ms; "
                                 + _READERS[has_agent],
                      "bar": "<= 25", "promised": False, "n": len(pairs), "spread": [round(low, 2), round(high, 2)]}), flush=True)  # fmt: skip


def row(name: str, pairs: list[tuple[float, float]], nothing: list[tuple[float, float]], has_agent: bool = False) -> None:
    """(ours, theirs) in seconds, and as many of nothing beside nothing."""
    low, middle, high = median_interval([100 * (ours / theirs - 1) for ours, theirs in pairs])
    control = median_interval([100 * (ours / theirs - 1) for ours, theirs in nothing])
    print(f"training.{name}: {middle:.4f} % [{low:.4f}, {high:.4f}], nothing beside nothing {control[1]:.4f} % "
          f"[{control[0]:.4f}, {control[2]:.4f}]", file=sys.stderr)  # fmt: skip
    raw = {side: round(1000 * sorted(pair[place] for pair in pairs)[len(pairs) // 2], 3)
           for place, side in enumerate(("ours", "theirs"))}  # fmt: skip
    print(json.dumps({"name": f"training.{name}", "value": round(high, 5), "unit": "percent",
                      "against": "the same step without hooks, in turns; the upper end of the 95 % interval of the median; "
                                 + _READERS[has_agent],
                      "bar": "<= 0.05", "promised": True, "raw": raw, "n": len(pairs),
                      "spread": [round(low, 5), round(high, 5)]}), flush=True)  # fmt: skip


def measure(training: Training, drain: Callable[[], None], pair_count: int) -> dict[bool, list[list[tuple[float, float]]]]:
    """By whether a side has hooks: pairs of time on the wall, and of processor time."""
    switch, chance = Switch(), random.Random(4711)
    # Of pairs with hooks and without, and of pairs of which neither has any; each (with, without) in turns.
    spent: dict[bool, list[list[tuple[float, float]]]] = {True: [[], []], False: [[], []]}
    place_with = 0
    for number in range(-4, pair_count):
        if sys.stderr.isatty() and number % 20 == 0:
            print(f"\r{number} of {pair_count} pairs", end="\r", file=sys.stderr, flush=True)
        for has_hooks in (True, False) if number % _CONTROL_EVERY == 0 else (True,):
            if training.is_at_end():
                place_with = chance.randrange(2)
                for place in range(2):
                    switch.turn(place == place_with)
                    training.begin_epoch(place)
                drain()
            first, took = chance.random() < 0.5, {}
            for side in (first, not first):
                switch.turn(side and has_hooks)
                training.warm(place_with if side else 1 - place_with)
                took[side] = training.step(place_with if side else 1 - place_with)
            if number >= 0:  # those before make what is made once
                for place in range(2):
                    spent[has_hooks][place].append((took[True][place], took[False][place]))
    switch.turn(True)
    drain()
    return spent


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--calls", action="store_true", help="what the hooked calls take by themselves, alone")
    parser.add_argument("--agent", action="store_true", help="an agent on another processor reads the rings, not the bench itself")
    parser.add_argument("--pairs", type=int, metavar="N", help="pairs of steps of the training instead of 16,000")
    parser.add_argument("--raw", type=pathlib.Path, metavar="FILE", help="write each pair's seconds, with hooks and without")
    options = parser.parse_args()
    pair_count, call_count = (30, 300) if options.quick else (16_000, 4000)
    pair_count = options.pairs or pair_count
    try:
        import torch
    except ImportError:
        print("training_bench: there is no torch here", file=sys.stderr)
        return 0
    if not _KEEP_MEMORY.items() <= os.environ.items():
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **_KEEP_MEMORY})
    torch.set_num_threads(1)
    os.environ["STEPWELL_QUIET"] = "1"
    with tempfile.TemporaryDirectory(prefix="stepwell-bench-") as name:
        folder = pathlib.Path(name)
        sys.path.insert(0, str(install(folder)))
        import stepwell

        spool = folder / "spool"
        spool.mkdir(mode=0o700)
        with agent_beside(spool) if options.agent else nullcontext(lambda: Rings(spool).drain()) as drain:
            run = stepwell.init(trial="bench", spool_dir=spool, start_agent=False,
                                server="127.0.0.1:9" if options.agent else "offline")  # fmt: skip
            spent = measure(Calls(), drain, call_count)
            row_of_calls(spent[True][0], spent[False][0], options.agent)
            if not options.calls:
                spent = measure(Training(), drain, pair_count)
                if options.raw:
                    options.raw.write_text(json.dumps({"hooks": spent[True], "nothing": spent[False]}), encoding="utf-8")
                for place, name in enumerate(("step", "step_cpu")):
                    row(name, spent[True][place], spent[False][place], options.agent)
            if run.dropped_count:
                print(f"training_bench: dropped {run.dropped_count}", file=sys.stderr)
            run.close(0)
    return 0


if __name__ == "__main__":
    sys.exit(main())
