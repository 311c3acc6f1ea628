"""A trial whose workers come from the fork server of Python's multiprocessing.

RECORDER_LIBRARY is the recorder's shared library, PYTHONPATH names this file's folder. RECORDER_IN=
server: the fork server, which imports this file before it forks anybody, opens a recorder too, and its
children record as its workers. RECORDER_IN=worker: each worker opens one itself. Each records COUNT
numbers that say who it is: 0 the trial, 1 the server, from 2 on the workers, each of which ends in its
own way.

Exit code: 0 all that this process recorded is stored, 3 not within 30 s, 1 anything else.
"""

import ctypes
import multiprocessing
import os
import signal
import sys
from collections.abc import Callable

COUNT = 1000
RECORDING = 1
GAUGE = 1

recorder = ctypes.CDLL(os.environ["RECORDER_LIBRARY"])
recorder.stepwell_record.argtypes = [ctypes.c_uint32, ctypes.c_double]
recorder.stepwell_close.argtypes = [ctypes.c_int64]
in_server = os.environ["RECORDER_IN"] == "server"


def open_recorder() -> None:
    if recorder.stepwell_open(None) != RECORDING:
        os._exit(1)


def record(who: int) -> None:
    series = recorder.stepwell_define_series(b"loader", b"number", b"1", GAUGE, None, 0)
    for number in range(COUNT):
        recorder.stepwell_record(series, who * 1_000_000 + number)


def kill_oneself() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def leave() -> None:
    os._exit(0)


def close() -> None:
    recorder.stepwell_close(0)


def return_from_it() -> None:
    pass


ENDS: list[Callable[[], None]] = [kill_oneself, leave, close, return_from_it]


def work(who: int, done: multiprocessing.Barrier) -> None:
    if not in_server:
        open_recorder()
    record(who)
    done.wait()  # all live at once: their indexes are 0, 1, ...
    ENDS[who - 2]()


def idle() -> None:
    """Records nothing, though it could."""


def train() -> int:
    open_recorder()
    record(0)
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["fork_server_trial"])
    done = context.Barrier(len(ENDS))
    workers = [context.Process(target=work, args=(who, done)) for who in range(2, 2 + len(ENDS))]
    workers.append(context.Process(target=idle))
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    print("codes", *[worker.exitcode for worker in workers])
    return 0 if recorder.stepwell_close(30_000) == 1 else 3


if __name__ == "__main__":
    sys.exit(train())
if __name__ == "fork_server_trial" and in_server:
    open_recorder()
    record(1)
