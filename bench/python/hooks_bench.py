#!/usr/bin/env python3
"""Do hooks of torch tell the truth of a slow dataset, and what do they cost a model's modules?

A dataset that sleeps 20 ms for each item, read without workers and with 4: `dataloader_next` of the hooks beside what
the loop's own clock says. Then a module that is called within another one's call, hooked beside not hooked.
Needs torch (Debian: python3-torch); without it nothing is measured.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import statistics
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from python_bench import install, row

_ITEM_S = 0.02


def measure_loader(run, repeats: int) -> None:
    import torch
    from stepwell._load import core

    class Slow(torch.utils.data.Dataset):
        def __len__(self) -> int:
            return 64

        def __getitem__(self, index: int) -> int:
            time.sleep(_ITEM_S)
            return index

    for worker_count in (0, 4):
        errors, ours, theirs = [], 0.0, 0.0
        for _ in range(repeats):
            core.take_tally()
            truth = 0.0
            batches = iter(torch.utils.data.DataLoader(Slow(), batch_size=4, num_workers=worker_count))
            for _ in range(16):
                begin = time.perf_counter()
                next(batches)
                truth += time.perf_counter() - begin
                time.sleep(_ITEM_S)  # the step's work
            next(batches, None)  # the last step ends
            _, _, paths = core.take_tally()
            ours = sum(ns for path, ns, _ in paths if path == "dataloader_next") / 1e9
            theirs = truth
            errors.append(abs(ours / theirs - 1))
        row(f"fetch_error_{worker_count}_workers", errors, "ratio", "what the loop's own clock says of its fetches",
            "<= 0.1", "hooks", raw={"ours": round(1000 * ours, 2), "theirs": round(1000 * theirs, 2)})  # fmt: skip


def measure_modules(repeats: int) -> None:
    import torch

    class Inner(torch.nn.Module):
        def forward(self, value: int) -> int:
            return value

    class Outer(torch.nn.Module):
        def __init__(self, call, count: int) -> None:
            super().__init__()
            self.inner, self.call, self.count = Inner(), call, count

        def forward(self, value: int) -> int:
            inner, call = self.inner, self.call
            for _ in range(self.count):
                call(inner, value)
            return value

    hooked = torch.nn.Module.__call__
    plain = hooked.__wrapped__
    count = 20000

    def seconds(call) -> float:
        outer = Outer(call, count)
        begin = time.thread_time()
        outer(1)
        return time.thread_time() - begin

    pairs = [(seconds(hooked), seconds(plain)) for _ in range(repeats)]
    row("inner_module", [a / b for a, b in pairs], "ratio", "the same module's call without a hook", "<= 1.1", "hooks", False,
        raw={"ours": round(min(a for a, _ in pairs) / count * 1e9, 1),
             "theirs": round(min(b for _, b in pairs) / count * 1e9, 1)})  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    is_quick = parser.parse_args().quick
    try:
        import torch
    except ImportError:
        print("hooks_bench: there is no torch here", file=sys.stderr)
        return 0
    torch.set_num_threads(1)
    os.environ["STEPWELL_QUIET"] = "1"
    with tempfile.TemporaryDirectory(prefix="stepwell-bench-") as name:
        folder = pathlib.Path(name)
        sys.path.insert(0, str(install(folder)))
        import stepwell

        (folder / "spool").mkdir(mode=0o700)
        run = stepwell.init(trial="bench", spool_dir=folder / "spool", start_agent=False, server="offline")
        measure_loader(run, 3 if is_quick else 7)
        measure_modules(5 if is_quick else 15)
        run.close(0)
    return 0


if __name__ == "__main__":
    sys.exit(main())
