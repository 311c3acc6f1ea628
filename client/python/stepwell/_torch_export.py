"""What torch.profiler saw, as a file that a merge can place."""

from __future__ import annotations

import json
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_USER_SCOPE = 7  # of torch's RecordScope: record_function's
_USEC_NS = 1000


def has_kineto() -> bool:
    """Of the torch that is imported."""
    from torch import profiler

    return bool(getattr(profiler, "kineto_available", lambda: True)())


def stem(epoch: int, last: int, rank: int) -> str:
    """As recorded traces are named: of an epoch that nobody said 0."""
    return f"ep{max(epoch, 0)}-ba{last + 1}-rank{rank}"


def write(profile: Any, path: str, rank: int) -> None:
    """`profile` is autograd's, of which torch.profiler's has a new one in each window. By torch itself, whose Kineto stamps a
    trace. A torch that is built without (Debian's) writes times that count from the profiler's begin, names that are no JSON,
    and no processes: its events are written here, as Kineto would."""
    if has_kineto():
        profile.export_chrome_trace(path)
        _check_whole(path)
        return
    results = profile.kineto_results
    # Renamed in torch 2.4.
    begin_ns = results.trace_start_ns() if hasattr(results, "trace_start_ns") else results.trace_start_us() * _USEC_NS
    head = {"schemaVersion": 1, "baseTimeNanoseconds": begin_ns, "distributedInfo": {"rank": rank}}
    with open(path, "w", encoding="utf-8") as file:
        file.write(json.dumps(head)[:-1] + ', "traceEvents": [\n')
        file.write(json.dumps({"ph": "M", "name": "process_name", "pid": os.getpid(), "tid": 0, "ts": 0,
                               "args": {"name": "python"}}))  # fmt: skip
        for event in profile.function_events:
            if event.trace_name is not None:  # memory, which has no duration
                file.write(",\n" + json.dumps(_written(event)))
        file.write("\n]}\n")


def remove(path: str, with_folder: bool) -> None:
    """What stands there."""
    for remove, name in ((os.unlink, path), (os.rmdir, os.path.dirname(path) if with_folder else "")):
        try:
            if name:
                remove(name)
        except OSError:
            pass  # it was not written, or somebody has it


def _check_whole(path: str) -> None:
    """What Kineto cannot write it tells its log alone, and what it has of it keeps another name."""
    try:
        with open(path, "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - 16))
            is_whole = file.read().rstrip().endswith(b"}")
    except OSError:
        is_whole = False
    if not is_whole:
        remove(path + ".tmp", False)
        raise OSError("torch could not write its file")


def _written(event: Any) -> dict[str, object]:
    written: dict[str, object] = {
        "ph": "X", "cat": "user_annotation" if event.scope == _USER_SCOPE else "cpu_op", "name": event.trace_name,
        "pid": os.getpid(), "tid": event.thread, "ts": event.time_range.start, "dur": event.time_range.elapsed_us(),
    }  # fmt: skip
    args = {"Input Dims": event.input_shapes} if event.input_shapes else {}
    if event.cpu_memory_usage:
        args["Bytes"] = event.cpu_memory_usage
    if args:
        written["args"] = args
    return written
