#!/usr/bin/env python3
"""What do hooks cost a real training of PyTorch's?

The same training step on a processor (a batch of a DataLoader, forward and backward pass and optimizer's step of a small
convolutional net, one thread), with hooks as stepwell.init() puts them in, and without, in turns within one process; who begins
is left to chance. As bench/harm does it: the interval that holds the median of the pairs' differences with 95 %.
Needs torch (Debian: python3-torch); without it nothing is measured.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import pathlib
import random
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from python_bench import Rings, install


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


class Training:
    """One net, and a loader of each side's own: a step of hooks reaches from one ask of its loader to the next."""

    def __init__(self) -> None:
        import torch

        torch.manual_seed(0)
        nn = torch.nn
        self._model = nn.Sequential(nn.Conv2d(3, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 64, 3, padding=1, stride=2),
                                    nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(1024, 10))  # fmt: skip
        self._optimizer = torch.optim.SGD(self._model.parameters(), lr=0.001, momentum=0.9)
        self._loss = nn.functional.cross_entropy
        images = torch.utils.data.TensorDataset(torch.randn(1024, 3, 32, 32), torch.randint(0, 10, (1024,)))
        self._loaders = {side: torch.utils.data.DataLoader(images, batch_size=32) for side in (False, True)}
        self._batches = {side: iter(loader) for side, loader in self._loaders.items()}

    def step(self, side: bool) -> tuple[float, float]:
        """Seconds on the wall, and of the thread's processor time."""
        batches = self._batches[side]
        if batches._num_yielded == len(batches):
            batches = self._batches[side] = iter(self._loaders[side])
        processor, begin = time.thread_time(), time.perf_counter()
        images, wanted = next(batches)
        self._optimizer.zero_grad()
        self._loss(self._model(images), wanted).backward()
        self._optimizer.step()
        return time.perf_counter() - begin, time.thread_time() - processor


def row(name: str, percents: list[float], seconds: dict[bool, list[float]]) -> None:
    low, middle, high = median_interval(percents)
    print(f"training.{name}: {middle:.4f} % [{low:.4f}, {high:.4f}]", file=sys.stderr)
    raw = {side: round(1000 * sorted(seconds[key])[len(percents) // 2], 3) for side, key in (("ours", True), ("theirs", False))}
    print(json.dumps({"name": f"training.{name}", "value": round(high, 5), "unit": "percent",
                      "against": "the same step without hooks, in turns; the upper end of the 95 % interval of the median",
                      "bar": "<= 0.05", "raw": raw, "n": len(percents),
                      "spread": [round(low, 5), round(high, 5)]}), flush=True)  # fmt: skip


def measure(spool: pathlib.Path, pair_count: int) -> None:
    training, switch, rings = Training(), Switch(), None
    chance = random.Random(4711)
    spent: dict[bool, list[tuple[float, float]]] = {False: [], True: []}
    for number in range(-10, pair_count):
        first = chance.random() < 0.5
        for side in (first, not first):
            switch.turn(side)
            took = training.step(side)
            if number >= 0:  # those before make what is made once
                spent[side].append(took)
        rings = rings or Rings(spool)
        rings.drain()
    switch.turn(True)
    for place, name in enumerate(("step", "step_cpu")):
        seconds = {side: [took[place] for took in found] for side, found in spent.items()}
        row(name, [100 * (ours / theirs - 1) for ours, theirs in zip(seconds[True], seconds[False])], seconds)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    pair_count = 60 if parser.parse_args().quick else 1200
    try:
        import torch
    except ImportError:
        print("training_bench: there is no torch here", file=sys.stderr)
        return 0
    torch.set_num_threads(1)
    os.environ["STEPWELL_QUIET"] = "1"
    with tempfile.TemporaryDirectory(prefix="stepwell-bench-") as name:
        folder = pathlib.Path(name)
        sys.path.insert(0, str(install(folder)))
        import stepwell

        spool = folder / "spool"
        spool.mkdir(mode=0o700)
        run = stepwell.init(trial="bench", spool_dir=spool, start_agent=False, server="offline")
        measure(spool, pair_count)
        if run.dropped_count:
            print(f"training_bench: dropped {run.dropped_count}", file=sys.stderr)
        run.close(0)
    return 0


if __name__ == "__main__":
    sys.exit(main())
