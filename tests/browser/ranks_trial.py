"""Records a trial of many ranks with known step times: ranks_trial.py LIBRARY RANKS STEPS STEP_MS [SLOW_RANK
[NOISE_MS]]. One process is all ranks, one after the other. A step takes STEP_MS, of SLOW_RANK three times as long, and
more or less by noise (Gaussian) of NOISE_MS, the same each time; of rank 0 the scope "forward" takes 1 ms by the host's clock and 9 ms by the device's. Its own name is STEPWELL_TRIAL. Exit code 3
unless all of it is stored within two minutes."""

import ctypes
import os
import random
import sys
import time

DURATION = 3
# Each holds a few of the files that a process may have open.
OPEN_MAX = 200


class Label(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("value", ctypes.c_char_p)]


def main() -> int:
    library, (ranks, steps, step_ms), slow = sys.argv[1], map(int, sys.argv[2:5]), int((sys.argv[5:] or ["-1"])[0])
    noise_ms, noise = float((sys.argv[6:] or ["0"])[0]), random.Random(1)
    recorder = ctypes.CDLL(library)
    recorder.stepwell_define_series.restype = ctypes.c_uint32
    recorder.stepwell_record_at.argtypes = (ctypes.c_uint32, ctypes.c_int32, ctypes.c_int64, ctypes.c_double)
    recorder.stepwell_close_begin.restype = ctypes.c_void_p
    recorder.stepwell_close_await.argtypes = (ctypes.c_void_p, ctypes.c_int64)
    recorder.stepwell_close_end.argtypes = (ctypes.c_void_p,)
    device = (Label * 1)(Label(b"clock", b"device"))
    step, host = (recorder.stepwell_define_series(b"timing", name, b"seconds", DURATION, None, 0) for name in (b"step", b"forward"))
    on_device = recorder.stepwell_define_series(b"timing", b"forward", b"seconds", DURATION, device, 1)
    os.environ.update(STEPWELL_SYSTEM_METRICS="0", STEPWELL_ATTEMPT_KEY="once", WORLD_SIZE=str(ranks))
    begun = int(time.time() * 1e6) - steps * 100_000
    closing: list[int] = []
    deadline = time.monotonic() + 120

    def is_stored() -> bool:
        stored = [recorder.stepwell_close_await(one, max(0, int((deadline - time.monotonic()) * 1e3))) == 1 for one in closing]
        for one in closing:
            recorder.stepwell_close_end(one)
        closing.clear()
        return all(stored)

    for rank in range(ranks):
        os.environ["RANK"] = str(rank)
        recorder.stepwell_open(None)
        for batch in range(steps):
            at = begun + batch * 100_000
            recorder.stepwell_record_at(step, batch, at, (step_ms * (3 if rank == slow else 1) + noise.gauss(0, noise_ms)) / 1e3)
            if rank == 0:
                recorder.stepwell_record_at(host, batch, at, 0.001)
                recorder.stepwell_record_at(on_device, batch, at, 0.009)
        closing.append(recorder.stepwell_close_begin())
        if len(closing) == OPEN_MAX and not is_stored():
            return 3
    return 0 if is_stored() else 3


sys.exit(main())
