"""Records a trial whose series have names that would harm a careless page: hostile_trial.py LIBRARY. Its own
name is STEPWELL_TRIAL. Exit code 3 unless all of it is stored within 30 s."""

import ctypes
import sys

NAMES = ("<script>window.harmed=1</script>", '<img src=x onerror="window.harmed=1">', "\u202egnp.exe",
         "עברית 100 %", "\"'&lt;b&gt;", "=cmd()|'/c calc'!A1", "n" * 200)


def main() -> int:
    recorder = ctypes.CDLL(sys.argv[1])
    recorder.stepwell_define_series.restype = ctypes.c_uint32
    recorder.stepwell_record.argtypes = (ctypes.c_uint32, ctypes.c_double)
    recorder.stepwell_close.argtypes = (ctypes.c_int64,)
    recorder.stepwell_open(None)
    recorder.stepwell_step_begin()
    series = [recorder.stepwell_define_series(name.encode(), name.encode(), b"<b>", 1, None, 0) for name in NAMES]
    for value in range(20):
        for one in series:
            recorder.stepwell_record(one, float(value))
    recorder.stepwell_step_end(-1)
    return 0 if recorder.stepwell_close(30_000) == 1 else 3


sys.exit(main())
