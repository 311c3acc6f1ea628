is_there = False
is_capturing = False
recorded = []
_now_ms = 0.0
_done_ms = -1.0
device = 0
used = 1


def is_initialized():
    return is_there


def is_current_stream_capturing():
    return is_capturing


def current_device():
    return device


def memory_stats(device):
    stats = {f"{name}.all.{kind}": value * used * factor for name, value in (("allocated_bytes", 1), ("active_bytes", 2),
             ("reserved_bytes", 3), ("inactive_split_bytes", 4)) for kind, factor in (("current", 1), ("peak", 10))}  # fmt: skip
    return {**stats, "num_alloc_retries": 5 * used}


def work(milliseconds):
    global _now_ms
    _now_ms += milliseconds


def finish():
    global _done_ms
    _done_ms = _now_ms


class Event:
    def __init__(self, enable_timing=False):
        assert enable_timing

    def record(self):
        assert not is_capturing, "an event is recorded into a graph"
        if getattr(self, "device", device) != device:
            raise RuntimeError("an event is recorded on another device than its own")
        self.device = device
        self.at_ms = _now_ms
        recorded.append(self)

    def query(self):
        assert not is_capturing, "an event is asked while a graph is captured"
        return self.at_ms <= _done_ms

    def elapsed_time(self, end):
        assert end.at_ms <= _done_ms, "it would be waited for"
        if end.device != self.device:
            raise RuntimeError("events of two devices")
        return end.at_ms - self.at_ms

    def synchronize(self):
        raise AssertionError("nothing waits for the GPU")
