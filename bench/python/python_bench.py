#!/usr/bin/env python3
"""What does a marker of the Python package cost a training step?

Beside two perf_counter() calls without `with`, the least that a timed region can be made of in Python:
a scope that is made anew each time, one that is kept, a scope while recording is off (beside a `with` over a lock, too), a
record. Then the import. The wheel is built of this checkout; the rings are emptied between rounds as by an agent.
"""

from __future__ import annotations

import argparse
import json
import mmap
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import zipfile
from collections.abc import Callable

_ROOT = pathlib.Path(__file__).resolve().parents[2]
_EVENTS = 4096  # a round: half a ring of the first size
_HEAD, _TAIL = 64, 128  # in a ring's header

# Each a loop of _EVENTS; the empty one is subtracted.
_BODIES = {
    "empty": "pass",
    "clocks": "start = perf_counter(); spent = perf_counter() - start",
    "scope_new": 'with run.scope("bench"): pass',
    "scope_reused": "with kept: pass",
    "lock": "with lock: pass",
    "record": 'run.record("loss", 1.5)',
    "series_record": "record(1.5)",
}


def loop(body: str, names: dict[str, object]) -> Callable[[], None]:
    """The loop as a function, its names local as in a training."""
    arguments = ", ".join(f"{name}={name}" for name in names)
    space: dict[str, object] = dict(names)
    exec(f"def loop({arguments}):\n    for _ in range({_EVENTS}):\n        {body}\n", space)
    return space["loop"]  # type: ignore[return-value]


class Rings:
    """The agent's end of this process's rings."""

    def __init__(self, root: pathlib.Path) -> None:
        self._maps = []
        for path in root.rglob("ring-*"):  # one: what is drained this often does not grow
            with path.open("r+b") as file:
                self._maps.append(mmap.mmap(file.fileno(), 4096))

    def drain(self) -> None:
        for ring in self._maps:
            ring[_TAIL : _TAIL + 8] = ring[_HEAD : _HEAD + 8]

    def unread_count(self) -> int:
        return sum(int.from_bytes(ring[_HEAD : _HEAD + 8], "little") - int.from_bytes(ring[_TAIL : _TAIL + 8], "little")
                   for ring in self._maps)  # fmt: skip


def ns_per_event(run: Callable[[], None], rounds: int, between: Callable[[], None]) -> float:
    """Of the thread's own time, the median of the rounds: neighbours on the machine cost neither side."""
    spent = []
    for _ in range(rounds):
        between()
        begin = time.thread_time_ns()
        run()
        spent.append(time.thread_time_ns() - begin)
    return statistics.median(spent) / _EVENTS


def row(name: str, runs: list[float], unit: str, against: str, bar: str, bench: str = "python", is_promised: bool = True,
        **more: object) -> None:  # fmt: skip
    print(json.dumps({"name": f"{bench}.{name}", "value": round(statistics.median(runs), 4), "unit": unit,
                      "against": against, "bar": bar, "promised": is_promised, "n": len(runs),
                      "spread": [round(min(runs), 4), round(max(runs), 4)], **more}), flush=True)  # fmt: skip


def install(folder: pathlib.Path) -> pathlib.Path:
    """The package, unpacked from its wheel."""
    sys.path.insert(0, str(_ROOT / "client" / "python" / "build_backend"))
    sys.dont_write_bytecode = True
    import stepwell_build

    wheel = stepwell_build.build_wheel(str(folder))
    site = folder / "site"
    with zipfile.ZipFile(folder / wheel) as archive:
        archive.extractall(site)
    return site


def measure_calls(folder: pathlib.Path, repeats: int, rounds: int) -> None:
    import stepwell

    run = stepwell.init(trial="bench", spool_dir=folder, start_agent=False, server="offline")
    kept = run.scope("kept")
    names: dict[str, object] = {"run": run, "kept": kept, "perf_counter": time.perf_counter,
                                "lock": threading.Lock(), "record": run.series("value").record}  # fmt: skip
    loops = {name: loop(body, names) for name, body in _BODIES.items()}
    rings = Rings(folder)
    for warm in loops.values():
        rings.drain()
        warm()
    found: dict[str, list[float]] = {name: [] for name in _BODIES}
    for _ in range(repeats):
        for name, body in loops.items():
            found[name].append(ns_per_event(body, rounds, rings.drain))
    if run.dropped_count > 0:
        raise SystemExit("python_bench: the ring was full; these numbers are not of recording")
    run.off()
    off: dict[str, list[float]] = {name: [] for name in ("empty", "scope_new", "scope_reused", "lock")}
    for _ in range(repeats):
        for name in off:
            off[name].append(ns_per_event(loops[name], rounds, lambda: None))
    os.environ["STEPWELL_QUIET"] = "1"
    run.close(0)

    def less_empty(name: str, of: dict[str, list[float]]) -> list[float]:
        return [max(0.0, a - b) for a, b in zip(of[name], of["empty"])]

    clocks = less_empty("clocks", found)
    for name, bar in (("scope_new", "<= 1.5"), ("scope_reused", "<= 1.1")):
        ours = less_empty(name, found)
        row(name, [a / b for a, b in zip(ours, clocks)], "ratio", "two perf_counter() calls without `with`", bar,
            raw={"ours": round(statistics.median(ours), 2), "theirs": round(statistics.median(clocks), 2)})  # fmt: skip
    row("record", less_empty("record", found), "ns", "an empty loop, subtracted", "<= 100")
    row("series_record", less_empty("series_record", found), "ns", "an empty loop, subtracted", "<= 100")
    row("disabled_new", less_empty("scope_new", off), "ns", "an empty loop, subtracted", "<= 40")
    row("disabled_reused", less_empty("scope_reused", off), "ns", "an empty loop, subtracted", "<= 40")
    # Nine tenths of it are the interpreter's own, which differs by half between processors.
    ours, locks = less_empty("scope_new", off), less_empty("lock", off)
    row("disabled_beside_lock", [a / b for a, b in zip(ours, locks)], "ratio", "`with` over a threading.Lock", "<= 1",
        is_promised=False, raw={"ours": round(statistics.median(ours), 2), "theirs": round(statistics.median(locks), 2)})  # fmt: skip


def measure_import(site: pathlib.Path, repeats: int) -> None:
    """What a process takes longer with it than without, of its processor time."""

    def seconds(program: str) -> float:
        environment = {**os.environ, "PYTHONPATH": str(site)}
        timed = f"import time; begin = time.process_time(); {program}; print(time.process_time() - begin)"
        done = subprocess.run([sys.executable, "-c", timed], env=environment, stdout=subprocess.PIPE, check=True)
        return float(done.stdout)

    seconds("import stepwell")  # writes what is compiled
    row("import", [1000 * seconds("import stepwell") for _ in range(repeats)], "ms", "nothing imported", "<= 50")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    is_quick = parser.parse_args().quick
    os.environ.pop("STEPWELL_DISABLED", None)
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="stepwell-bench-", dir=memory) as name:
        folder = pathlib.Path(name)
        site = install(folder)
        sys.path.insert(0, str(site))
        spool = folder / "spool"
        spool.mkdir(mode=0o700)
        measure_calls(spool, 5 if is_quick else 15, 30 if is_quick else 200)
        measure_import(site, 5 if is_quick else 15)
    return 0


if __name__ == "__main__":
    sys.exit(main())
