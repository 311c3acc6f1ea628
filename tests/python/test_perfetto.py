"""What we write in Perfetto's form, read by the descriptors that Perfetto publishes (perfetto_reader.py) and by nothing of ours."""

import functools
import json
import os
import pathlib
import struct
import subprocess
import tempfile
import unittest
import zlib

import product
from product import WAIT_S
from test_torch_profiler import _TORCH, TracesTest

_VARIABLE = "STEPWELL_PERFETTO_PYTHON"  # that has the packages of perfetto.txt
_READER = str(pathlib.Path(__file__).with_name("perfetto_reader.py"))

# All kinds of events of Chrome's form: kernels that overlap, a flow, an asynchronous one, a counter of two values, one without an end.
_CHROME = """{"traceEvents":[
{"ph":"M","name":"process_name","pid":1,"args":{"name":"python"}},
{"ph":"X","name":"work","ts":10,"dur":5,"pid":1,"tid":1,"args":{"shape":[1,2],"text":"größer","share":1.5,"is_last":true,"count":-3}},
{"ph":"X","name":"kernel","ts":12,"dur":9,"pid":1,"tid":2},{"ph":"X","name":"late","ts":15,"dur":9,"pid":1,"tid":2},
{"ph":"s","id":7,"name":"launch","cat":"ac2g","ts":11,"pid":1,"tid":1},
{"ph":"f","bp":"e","id":7,"name":"launch","cat":"ac2g","ts":13,"pid":1,"tid":2},
{"ph":"b","id":"0x3","name":"request","cat":"c","ts":11,"pid":1,"tid":1},
{"ph":"e","id":"0x3","name":"request","cat":"c","ts":14,"pid":1,"tid":1},
{"ph":"i","name":"moment","ts":13,"pid":1,"tid":0},{"ph":"C","name":"used","ts":13,"pid":1,"args":{"v":2,"w":3}},
{"ph":"B","name":"open","ts":30,"pid":1,"tid":1}]}"""

# It goes on until a file is there; each rank waits for a capture within its steps.
_TRAINING = """
    import os, threading, time, stepwell
    end = os.environ["FOLDER"] + "/end"
    def loading(run):
        while not os.path.exists(end):
            with run.scope("load"): time.sleep(0.01)
    with stepwell.init() as run:
        worker = threading.Thread(target=loading, args=(run,), name="loader")
        worker.start()
        run.record("epoch", 2)
        for index, _ in run.steps(iter(int, 1), start=7):
            with run.scope("train_batch"), run.scope("forward"): time.sleep(0.01)
            run.record("loss", 1 / (index + 1))
            if index % 5 == 0: run.instant("checkpoint")
            if os.path.exists(end): break
        worker.join()
    """
_PROFILED = """
import torch, stepwell
torch.set_num_threads(1)
leaf = torch.randn(4, requires_grad=True)
with stepwell.init() as run, stepwell.torch_profiler(schedule=stepwell.schedule(warmup=1, active=3, repeat=1)) as profiler:
    for index, batch in run.steps(range(5)):
        with run.scope("train_batch"):
            torch.mm(torch.ones(64, 64), torch.ones(64, 64))
            leaf.sum().backward()
        profiler.step()
"""


@functools.cache
def _reason_to_skip() -> str:
    python = os.environ.get(_VARIABLE, "")
    if not python:
        return f"{_VARIABLE} names no interpreter; tests/run.sh --long --only readers makes one"
    done = subprocess.run([python, "-c", "import perfetto.protos.perfetto.trace.perfetto_trace_pb2"], stdin=subprocess.DEVNULL,
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip
    return "" if done.returncode == 0 else f"{python} has no perfetto"


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out) + bytes([value])


def _field(number: int, value: "int | float | bytes") -> bytes:
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    if isinstance(value, float):
        return _varint(number << 3 | 1) + struct.pack("<d", value)
    return _varint(number << 3 | 2) + _varint(len(value)) + value


def _event(*fields: bytes, track: int = 1, clock: int = 0) -> bytes:
    """A packet of our sequence, an hour behind the base."""
    event = _field(11, track) + b"".join(fields)
    packet = _field(8, 3_600_000_000_000) + _field(10, 1) + _field(13, 2) + _field(11, event)
    return _field(1, packet + (_field(58, clock) if clock else b""))


_NAME, _BEGIN, _END, _INSTANT, _COUNTER = _field(23, b"spoiled"), _field(9, 1), _field(9, 2), _field(9, 3), _field(9, 4)
# What is appended to a file, and what the reader has to say of it.
_SPOILED = {
    "nothing": (_event(_INSTANT, _NAME), ""),
    "a field that is not published": (_event(_INSTANT, _NAME, _field(4000, 1)), "TracePacket.track_event has field 4000"),
    "one in an argument": (_event(_INSTANT, _NAME, _field(4, _field(10, b"a") + _field(3, 1) + _field(900, b""))),
                           "debug_annotations has field 900"),
    "one in a block": (_field(1, _field(50, zlib.compress(_event(_INSTANT, _NAME, _field(4001, b"x"))))), "field 4001"),
    "a type that is not published": (_event(_field(9, 77), _NAME), "track_event has field 9"),
    "a track that nobody described": (_event(_INSTANT, _NAME, track=999_999), "track 999999, which is not described"),
    "a name that nobody gave": (_event(_INSTANT, _field(10, 4242)), "event_names 4242 is named and no text"),
    "a slice without a name": (_event(_BEGIN) + _event(_END), "without a name"),
    "an argument without a value": (_event(_INSTANT, _NAME, _field(4, _field(10, b"a"))), "without a name or a value"),
    "an end too many": (_event(_END), "an end without a begin"),
    "an end too few": (_event(_BEGIN, _NAME), "spoiled has no end"),
    "a flow to nowhere": (_event(_INSTANT, _NAME, _varint(47 << 3 | 1) + struct.pack("<Q", 5)), "flow 5 has one end alone"),
    "a value among slices": (_event(_COUNTER, _field(44, 1.0)), "a counter's value on a row of slices"),
    "a name that is no text": (_event(_INSTANT, _field(23, b"\xff\xfe")), "name is no UTF-8"),
    "a clock that nobody set": (_event(_INSTANT, _NAME, clock=99), "of clock 99"),
    "a process once more": (_field(1, _field(10, 1) + _field(13, 2) + _field(60, _field(1, 77_777) + _field(3, _field(1, 1)))),
                            "there should only be one"),
    "half a packet": (_event(_INSTANT, _NAME)[:-3], "no Trace"),
}  # fmt: skip


class PerfettoTest(TracesTest):
    def setUp(self):
        if _reason_to_skip():
            self.skipTest(_reason_to_skip())
        scratch = tempfile.TemporaryDirectory(dir=product.folder())
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)

    def command(self, *words: str) -> str:
        done = subprocess.run([product.program(), *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=2 * WAIT_S)  # fmt: skip
        self.assertEqual(0, done.returncode, done.stdout + done.stderr)
        return done.stdout

    def read(self, *paths: pathlib.Path) -> list[dict]:
        done = subprocess.run([os.environ[_VARIABLE], _READER, *map(str, paths)], stdin=subprocess.DEVNULL,
                              env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=2 * WAIT_S)  # fmt: skip
        self.assertEqual(0, done.returncode, done.stderr)
        return json.loads(done.stdout)

    def read_sound(self, *paths: pathlib.Path) -> list[dict]:
        found = self.read(*paths)
        for path, each in zip(paths, found):
            self.assertEqual([], each["troubles"], path.name)
        return found

    def merged_chrome(self) -> pathlib.Path:
        (self.folder / "of-rank3.json").write_text(_CHROME)
        self.command("trace", "merge", str(self.folder / "of-rank3.json"), "--output", str(self.folder / "merged.pftrace"))
        return self.folder / "merged.pftrace"

    def test_a_merge_of_each_kind_of_event_is_what_perfetto_publishes(self):
        (found,) = self.read_sound(self.merged_chrome())
        process = "rank 3 · python"
        self.assertEqual([process], found["processes"])
        slices = {each["name"]: (each["row"][1:], each["begin"], each["end"], each["args"]) for each in found["slices"]}
        args = {"shape": [1, 2], "text": "größer", "share": 1.5, "is_last": True, "count": -3}
        self.assertEqual({"work": ([""], 10_000, 15_000, args), "kernel": ([""], 12_000, 21_000, {}),
                          "late": (["", "at the same time"], 15_000, 24_000, {}), "request": (["request"], 11_000, 14_000, {}),
                          "open": ([""], 30_000, 30_000, {"unfinished": True})}, slices)  # fmt: skip
        self.assertEqual([["work", "kernel"]], found["flows"])
        self.assertEqual({"used v": 1, "used w": 1}, found["counts"])
        self.assertEqual([("input", "of-rank3.json"), ("moment", "")],
                         [(each["name"], each["args"].get("file", "").split("/")[-1]) for each in found["moments"]])  # fmt: skip
        # Read and written once more, also where the file is packed as a whole.
        for name in ("whole.pftrace.gz", "again.pftrace"):
            self.command("trace", "merge", str(self.folder / "merged.pftrace"), "--rank", f"{self.folder}/merged.pftrace=3",
                         "--output", str(self.folder / name))  # fmt: skip
            (again,) = self.read_sound(self.folder / name)
            self.assertEqual(found["flows"], again["flows"], name)
            self.assertEqual([1, 1], list(again["counts"].values()), name)
            times = {each["name"]: (each["begin"], each["end"]) for each in again["slices"]}
            self.assertEqual({name: place[1:3] for name, place in slices.items()}, times, name)

    def test_what_is_not_as_published_is_found(self):
        sound = self.merged_chrome().read_bytes()
        paths = []
        for name, (spoil, _) in _SPOILED.items():
            paths.append(self.folder / f"{name}.pftrace")
            paths[-1].write_bytes(sound + spoil)
        for (name, (_, wanted)), found in zip(_SPOILED.items(), self.read(*paths)):
            with self.subTest(name):
                self.assertEqual(bool(wanted), bool(found["troubles"]), found["troubles"])
                self.assertIn(wanted, "; ".join(found["troubles"]))

    def test_recorded_captured_and_merged_traces_of_a_run_are_what_perfetto_publishes(self):
        traces, end = self.folder / "traces", self.folder / "end"
        ranks = [self.start(_TRAINING, variables={"RANK": str(rank), "WORLD_SIZE": "2", "STEPWELL_ATTEMPT_KEY": "one",
                                                  "STEPWELL_SYSTEM_METRICS": "1", "STEPWELL_INTERVAL": "0.05",
                                                  "STEPWELL_TRACES": str(traces), "FOLDER": str(self.folder)})
                 for rank in range(2)]  # fmt: skip
        try:
            captured: list[str] = []

            def is_captured() -> bool:
                done = subprocess.run([product.program(), "capture", self.trial, "--server", product.server(), "--steps", "4",
                                       "--timeout", "40s"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                      stderr=subprocess.STDOUT, text=True, timeout=2 * WAIT_S)  # fmt: skip
                captured[:] = [done.stdout]
                return done.returncode == 0 and done.stdout.count("capture-") == 2

            self.assertTrue(self.eventually(is_captured), captured)
        finally:
            end.touch()
            ended = [process.communicate(timeout=2 * WAIT_S) for process in ranks]
        self.assertEqual([0, 0], [process.returncode for process in ranks], ended)

        def are_stored() -> bool:
            stored = [each["header"]["name"] for each in self.traces() if each["state"] == "complete"]
            return sum(not name.startswith("capture-") for name in stored) == 2

        self.assertTrue(self.eventually(are_stored), self.traces())
        recorded = sorted(traces.glob("ep*.pftrace"), key=lambda path: path.name.split("-")[-1])
        self.assertEqual(2, len(recorded))
        for rank, found in enumerate(self.read_sound(*recorded)):
            self.assert_run(found, rank, {"train_batch", "forward", "step", "load"})
            self.assertEqual(1, len(found["processes"]), found["processes"])
            self.assertEqual(2, len({tuple(each["row"]) for each in found["slices"]}))  # the training's, and its loader's
            # Each series, and what the process used.
            self.assertTrue({"loss", "memory_process_resident"} <= set(found["counts"]), found["counts"])
            self.assertIn("checkpoint", [each["name"] for each in found["moments"]])
        got = self.folder / "got"
        self.command("trace", "get", self.trial, "--server", product.server(), "--directory", str(got))
        captures = sorted(got.glob("capture-*.pftrace"))
        self.assertGreaterEqual(len(captures), 2)
        for path, found in zip(captures, self.read_sound(*captures)):
            self.assert_run(found, int(path.name.split("rank")[1][0]), {"train_batch", "forward", "step"})
            steps = [each["args"]["batch"] for each in found["slices"] if each["name"] == "step"]
            self.assertEqual(list(range(steps[0], steps[0] + 4)), steps)
        merged = self.folder / "merged.pftrace"
        self.command("trace", "merge", "--trial", self.trial, "--server", product.server(), "--format", "perfetto", "--output",
                     str(merged))  # fmt: skip
        (found,) = self.read_sound(merged)
        for rank in range(2):
            self.assertTrue(any(name.startswith(f"rank {rank} ") for name in found["processes"]), found["processes"])
        self.assertTrue(any(name.startswith("machine ") for name in found["processes"]), found["processes"])
        self.assertTrue(any(name.startswith("cpu") for name in found["counts"]), list(found["counts"]))

    def assert_run(self, found: dict, rank: int, names: set[str]) -> None:
        slices = found["slices"]
        self.assertLessEqual(names, {each["name"] for each in slices})
        self.assertEqual({rank}, {each["args"]["rank"] for each in slices})
        steps = {each["args"]["batch"]: each for each in slices if each["name"] == "step"}
        for each in slices:
            # On one line, nested: the pass within its batch, the batch within its step.
            if each["name"] in ("train_batch", "forward") and each["args"].get("batch") in steps:
                step = steps[each["args"]["batch"]]
                self.assertEqual(step["row"], each["row"])
                self.assertLessEqual(step["begin"], each["begin"])
                self.assertLessEqual(each["end"], step["end"])
                self.assertGreater(each["end"] - each["begin"], 9_000_000)
                self.assertEqual(1 + (each["name"] == "forward"), each["depth"], each)

    @unittest.skipUnless(_TORCH, "torch is not installed: deploy/install_packages.sh torch")
    def test_a_merge_with_a_profile_of_torchs_is_what_perfetto_publishes(self):
        ranks = [self.start(_PROFILED, variables={
                     "PYTHONPATH": _TORCH, "RANK": str(rank), "WORLD_SIZE": "2", "STEPWELL_ATTEMPT_KEY": "one",
                     "TMPDIR": str(self.folder), "STEPWELL_TRACES": str(self.folder / "traces")})
                 for rank in range(2)]  # fmt: skip
        for process in ranks:
            out, err = process.communicate(timeout=2 * WAIT_S)
            self.assertEqual(0, process.returncode, out + err)
        self.assertTrue(self.eventually(lambda: len([each for each in self.traces() if each["state"] == "complete"]) == 4),
                        self.traces())  # fmt: skip
        merged = self.folder / "merged.pftrace"
        self.command("trace", "merge", "--trial", self.trial, "--server", product.server(), "--format", "perfetto", "--output",
                     str(merged))  # fmt: skip
        (found,) = self.read_sound(merged)
        names = [each["name"] for each in found["slices"]]
        self.assertEqual(2 * 3, names.count("aten::mm"))
        self.assertEqual(2 * (5 + 3), names.count("train_batch"))  # ours, and the scopes among its operators
        for rank in range(2):
            self.assertTrue(any(name.startswith(f"rank {rank} ") for name in found["processes"]), found["processes"])


if __name__ == "__main__":
    unittest.main()
