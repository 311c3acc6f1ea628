#!/usr/bin/env python3
"""What does a scope cost beside a marker pair of Composer's profiler?

Both as `with` statements around nothing, in turns within one process: Composer's marker with its own JSONTraceHandler,
whose queue is emptied between rounds as at the end of a window, and a schedule that always records.
Needs composer, in this interpreter or in the environment that `tests/run.sh --long --only frameworks` makes; without
it nothing is measured.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import pathlib
import statistics
import sys
import tempfile
import types

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from python_bench import Rings, install, loop, ns_per_event, row


def use_frameworks() -> bool:
    """Goes on in their interpreter, where this one has no composer. False = there is none."""
    if importlib.util.find_spec("composer") is not None:
        return True
    temporary = os.environ.get("TMPDIR") or "/var/tmp"
    folder = os.environ.get("STEPWELL_FRAMEWORKS") or f"{temporary}/stepwell-frameworks-{os.getuid()}"
    python = f"{folder}/bin/python"
    if os.access(python, os.X_OK) and os.environ.get("_COMPOSER_BENCH") is None:
        os.environ["_COMPOSER_BENCH"] = "1"
        os.execv(python, [python, *sys.argv])
    return False


def composers(folder: pathlib.Path) -> tuple[object, object]:
    """Its profiler, which knows of a training what it asks of one, and its handler."""
    from composer.core import Timestamp
    from composer.profiler import JSONTraceHandler, Profiler, ProfilerAction

    handler = JSONTraceHandler(folder=str(folder / "traces"))
    profiler = Profiler(schedule=lambda state: ProfilerAction.ACTIVE, trace_handlers=[handler],
                        sys_prof_cpu=False, torch_prof_folder=None)  # fmt: skip
    profiler.state = types.SimpleNamespace(timestamp=Timestamp(), callbacks=[])
    return profiler, handler


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    is_quick = parser.parse_args().quick
    if not use_frameworks():
        print("composer_bench: there is no composer here", file=sys.stderr)
        return 0
    os.environ.update(STEPWELL_QUIET="1", CUDA_VISIBLE_DEVICES="")
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    with tempfile.TemporaryDirectory(prefix="stepwell-bench-") as name:
        folder = pathlib.Path(name)
        sys.path.insert(0, str(install(folder)))
        import stepwell

        (folder / "spool").mkdir(mode=0o700)
        run = stepwell.init(trial="bench", spool_dir=folder / "spool", start_agent=False, server="offline", hooks=False)
        profiler, handler = composers(folder)
        names: dict[str, object] = {"run": run, "profiler": profiler, "marker": profiler.marker("kept"),
                                    "kept": run.scope("kept")}  # fmt: skip
        bodies = {"empty": "pass", "scope_new": 'with run.scope("bench"): pass', "scope_reused": "with kept: pass",
                  "marker_new": 'with profiler.marker("bench"): pass', "marker_reused": "with marker: pass"}  # fmt: skip
        loops = {body: loop(text, names) for body, text in bodies.items()}
        loops["scope_new"]()  # the thread's ring is there from now on
        rings = Rings(folder / "spool")

        def between() -> None:
            rings.drain()
            handler._queue.queue.clear()

        found: dict[str, list[float]] = {body: [] for body in bodies}
        for _ in range(3 if is_quick else 9):
            for body, text in loops.items():
                found[body].append(ns_per_event(text, 3 if is_quick else 15, between))
        if run.dropped_count > 0:
            raise SystemExit("composer_bench: the ring was full; these numbers are not of recording")
        for kind in ("new", "reused"):
            ours, theirs = ([a - b for a, b in zip(found[f"{what}_{kind}"], found["empty"])]
                            for what in ("scope", "marker"))  # fmt: skip
            row(f"scope_{kind}", [a / b for a, b in zip(ours, theirs)], "ratio",
                "a marker pair of Composer's profiler, with its JSON handler", "<= 0.05", "composer", False,
                raw={"ours": round(statistics.median(ours), 2), "theirs": round(statistics.median(theirs), 2)})  # fmt: skip
        run.close(0)
    return 0


if __name__ == "__main__":
    sys.exit(main())
