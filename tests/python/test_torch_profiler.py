"""torch's profiler by our schedule, on two ranks: one merged trace in which operators lie within our scopes in time."""

import json
import os
import pathlib
import statistics
import subprocess
import tempfile
import unittest

import product
from product import WAIT_S, ProductTest

_TORCH = os.environ.get("PRODUCT_TORCH", "")  # the folder that has it
# Its clocks may be apart by what the wall clock is steered meanwhile: an operator has some milliseconds around it.
_TRAINING = """
import os, subprocess, time, torch, stepwell
torch.set_num_threads(1)
weight = torch.randn(64, 64)
leaf = torch.randn(4, requires_grad=True)
with stepwell.init() as run:
    schedule = stepwell.schedule(wait=1, warmup=1, active=3, repeat=1)
    with stepwell.torch_profiler(schedule=schedule, profile_memory=True) as profiler:
        for index, batch in run.steps(range(7)):
            with run.scope("train_batch"):
                time.sleep(0.01)
                with run.scope("forward"):
                    torch.mm(weight, weight)
                leaf.sum().backward()       # timed by the hooks
                time.sleep(0.01)
            profiler.step()
        run.record("loss", 0.5)
    with run.scope("evaluate"):  # until this process was measured within what the merge shows
        read = [os.environ["PROGRAM"], "read", os.environ["STEPWELL_TRIAL"], "--name", "memory_process_resident",
                "--label", "rank=" + os.environ["RANK"]]
        until = time.monotonic() + 60
        while time.monotonic() < until:
            if subprocess.run(read, capture_output=True).stdout.count(b"\\n") >= 3:
                break
"""
_BATCHES = [2, 3, 4]
# What torch's record_function does itself, before the scope begins.
_OF_RECORD_FUNCTION = ("aten::empty", "aten::zeros", "aten::zero_")
_CLOCK_US = 5000  # what the wall clock may be steered during the test
_APART_US = 300  # half of a scope's ends, whatever else the machine does


class Slices:
    """Of one name in a merged trace: (rank, process, begin, end, args), B and E joined."""

    def __init__(self, trace: dict) -> None:
        self._names = {event["pid"]: event["args"]["name"] for event in trace["traceEvents"]
                       if event["ph"] == "M" and event["name"] == "process_name"}  # fmt: skip
        self._found: list[tuple[str, int, str, float, float, dict]] = []
        open_ones: dict[tuple, list[dict]] = {}
        for event in trace["traceEvents"]:
            row = open_ones.setdefault((event.get("pid"), event.get("tid")), [])
            if event["ph"] == "B":
                row.append(event)
            elif event["ph"] == "E" and row:
                self._add(row[-1], event["ts"])
                row.pop()
            elif event["ph"] == "X":
                self._add(event, event["ts"] + event.get("dur", 0))

    def _add(self, event: dict, end: float) -> None:
        process = self._names.get(event["pid"], "")
        words = process.split()
        rank = int(words[1]) if words[:1] == ["rank"] else -1
        self._found.append((event["name"], rank, process, event["ts"], end, event.get("args", {})))

    def process(self, pid: int) -> str:
        return self._names.get(pid, "")

    def range(self) -> tuple[float, float]:
        return min(each[3] for each in self._found), max(each[4] for each in self._found)

    def of_rank(self, rank: int) -> list[tuple[str, float, float, dict]]:
        """(name, begin, end, args), by their begin."""
        return sorted(((each[0], *each[3:]) for each in self._found if each[1] == rank), key=lambda each: each[1])

    def named(self, name: str) -> list[tuple[int, str, float, float, dict]]:
        return [each[1:] for each in self._found if each[0] == name]


class TracesTest(ProductTest):
    def traces(self) -> list[dict]:
        done = subprocess.run([product.program(), "trace", "list", self.trial, "--server", product.server(), "--json"],
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              timeout=WAIT_S)  # fmt: skip
        return json.loads(done.stdout).get("traces", []) if done.returncode == 0 else []


@unittest.skipUnless(_TORCH, "torch is not installed: deploy/install_packages.sh torch")
class TorchProfilerTest(TracesTest):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(dir=product.folder())
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)

    def train(self, *, rank: int, directory: str) -> subprocess.Popen:
        return self.start(_TRAINING, variables={"PYTHONPATH": _TORCH, "RANK": str(rank), "WORLD_SIZE": "2",
                                                "STEPWELL_ATTEMPT_KEY": "one", "STEPWELL_TRACES": directory,
                                                "STEPWELL_SYSTEM_METRICS": "1", "TMPDIR": str(self.folder), "STEPWELL_INTERVAL": "0.05",
                                                "PROGRAM": product.program()})  # fmt: skip

    def test_operators_of_two_ranks_lie_within_our_scopes_in_one_trace(self):
        directory = str(self.folder / "traces")
        ranks = [self.train(rank=rank, directory=directory) for rank in range(2)]
        for process in ranks:
            out, err = process.communicate(timeout=2 * WAIT_S)
            self.assertEqual(0, process.returncode, out + err)
            self.assertNotIn("Warning", err)
            self.assertNotIn("no agent uploads", err)

        def are_stored() -> bool:
            return sum(trace["state"] == "complete" for trace in self.traces()) == 4

        self.assertTrue(self.eventually(are_stored), self.traces())
        for trace in self.traces():
            header = trace["header"]
            is_native = ".pt.trace" in header["name"]
            self.assertEqual([2, 4] if is_native else [0, 6], [header["first_batch"], header["last_batch"]], header)
        names = sorted(trace["header"]["name"] for trace in self.traces() if ".pt.trace" in trace["header"]["name"])
        self.assertEqual([f"ep0-ba5-rank{rank}.pt.trace.json" for rank in range(2)], [name[:27] for name in names])
        merged = self.folder / "merged.json"
        subprocess.run([product.program(), "trace", "merge", "--trial", self.trial, "--server", product.server(),
                        "--output", str(merged)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, check=True, timeout=WAIT_S)  # fmt: skip
        trace = json.loads(merged.read_text())
        for each in trace["metadata"]["inputs"]:
            self.assertEqual(0, each["clock_error_us"], each)
        slices = Slices(trace)
        for rank in range(2):
            with self.subTest(rank=rank):
                spans = {args["batch"]: (begin, end) for of, _, begin, end, args in slices.named("train_batch")
                         if of == rank and "batch" in args}  # fmt: skip
                self.assertEqual(list(range(7)), sorted(spans))
                for name in ("aten::mm", "forward", "backward", "train_batch"):
                    # Of the profiler: ours have a batch.
                    native = [(begin, end) for of, _, begin, end, args in slices.named(name)
                              if of == rank and "batch" not in args]  # fmt: skip
                    self.assertEqual(len(_BATCHES), len(native), name)
                    middles = [(begin + end) / 2 for begin, end in native]
                    within = [batch for middle in middles for batch, (begin, end) in spans.items() if begin <= middle <= end]
                    self.assertEqual(_BATCHES, within, name)
                    if name == "aten::mm":
                        for (begin, end), batch in zip(native, within):
                            self.assertLessEqual(spans[batch][0], begin)
                            self.assertLessEqual(end, spans[batch][1])
                self.assert_operators_within(slices, rank, spans)
        begin, end = slices.range()
        counted = [event for event in trace["traceEvents"] if event["ph"] == "C" and begin <= event["ts"] <= end]
        counters = {(slices.process(event["pid"]), event["name"].split(" ")[0]) for event in counted}
        for name in ("cpu_util_process", "memory_process_resident"):
            for rank in range(2):  # each has its own, beside what the machine was measured
                self.assertIn((f"rank {rank} · training, rank {rank}", name), counters)
        for name in ("cpu_util_simple", "memory_used"):
            self.assertTrue(any(process.startswith("machine ") and of == name for process, of in counters), counters)

    def assert_operators_within(self, slices: Slices, rank: int, spans: dict[int, tuple[float, float]]) -> None:
        """Event by event: each operator that torch saw within a scope of ours, which it saw, too, lies within what we
        recorded of that scope; and what it saw of the scope is what we did."""
        native = [each for each in slices.of_rank(rank) if "batch" not in each[3]]
        mirrored = [(begin, end) for name, begin, end, _ in native if name == "train_batch"]
        operators = [(name, begin, end) for name, begin, end, _ in native
                     if name.startswith("aten::") and name not in _OF_RECORD_FUNCTION]  # fmt: skip
        found, apart_us = 0, []
        for batch, (scope_begin, scope_end) in zip(_BATCHES, mirrored):
            begin, end = spans[batch]
            apart_us += [abs(scope_begin - begin), abs(scope_end - end)]
            self.assertLess(sum(apart_us[-2:]), _CLOCK_US, batch)
            for name, op_begin, op_end in operators:
                if op_begin >= scope_begin and op_end <= scope_end:
                    found += 1
                    self.assertTrue(begin <= op_begin and op_end <= end, (name, op_begin, op_end, begin, end))
        self.assertEqual(len(operators), found)  # the training computes nowhere else
        self.assertGreaterEqual(found, 10)
        print(f"rank {rank}: ours and torch's ends are apart by {statistics.median(apart_us):.0f} us, at most {max(apart_us):.0f}")
        self.assertLess(statistics.median(apart_us), _APART_US)

    def test_what_could_not_be_written_leaves_nothing_and_the_training_goes_on(self):
        out, err = self.run_trial("""
            import resource, torch, stepwell
            from stepwell import _trace_writing
            room = resource.getrlimit(resource.RLIMIT_FSIZE)
            with stepwell.init() as run:
                with stepwell.torch_profiler(schedule=stepwell.schedule(active=2, repeat=2)) as profiler:
                    for index, batch in run.steps(range(4)):
                        for _ in range(50): torch.mm(torch.ones(2, 2), torch.ones(2, 2))
                        if index == 1: resource.setrlimit(resource.RLIMIT_FSIZE, (2000, room[1]))
                        profiler.step()
                        _trace_writing.wait()
                        resource.setrlimit(resource.RLIMIT_FSIZE, room)
            print("goes on")
            """, variables={"PYTHONPATH": _TORCH, "TMPDIR": str(self.folder)})
        self.assertEqual("goes on\n", out)
        self.assertIn("what torch's profiler saw is lost", err)
        self.assertTrue(self.eventually(lambda: [trace["header"]["first_batch"] for trace in self.traces()
                                                 if trace["state"] == "complete"] == [2]), self.traces())  # fmt: skip
        self.assertTrue(self.eventually(lambda: not list(self.folder.iterdir())), list(self.folder.iterdir()))

    _SLOWLY = """
            import threading, torch, stepwell
            from stepwell import _torch_export
            write, gate, waited = _torch_export.write, threading.Event(), []
            def slowly(*arguments):
                waited.append(gate.wait(SECONDS))
                write(*arguments)
            _torch_export.write = slowly
            with stepwell.init(RUNS) as run:
                with stepwell.torch_profiler(PROFILERS) as profiler:
                    for index, batch in run.steps(range(6)):
                        torch.mm(torch.ones(2, 2), torch.ones(2, 2))
                        profiler.step()
                        if index == GATE: gate.set()
            print(*waited)
            """

    def assert_slow(self, wanted: str, first_batch: int, **words: str) -> None:
        source = self._SLOWLY
        for word, value in words.items():
            source = source.replace(word, value)
        out, err = self.run_trial(source, variables={"PYTHONPATH": _TORCH, "TMPDIR": str(self.folder)})
        self.assertEqual(wanted, out, err)
        self.assertTrue(self.eventually(lambda: [trace["header"]["first_batch"] for trace in self.traces()
                                                 if trace["state"] == "complete"] == [first_batch]), (self.traces(), err))  # fmt: skip

    def test_no_step_waits_for_what_is_written(self):
        self.assert_slow("True\n", 0, SECONDS="20", RUNS="", PROFILERS="schedule=stepwell.schedule(active=2, repeat=1)", GATE="4")

    def test_a_run_that_is_off_after_the_window_waits_for_what_is_written(self):
        self.assert_slow("False\n", 1, SECONDS="1", RUNS="schedule=stepwell.schedule(wait=1, active=2, repeat=1)",
                         PROFILERS="", GATE="5")  # fmt: skip

    def test_of_files_that_stay_the_newest_are_kept(self):
        out, err = self.run_trial("""
            import torch, stepwell
            with stepwell.init() as run:
                with stepwell.torch_profiler(schedule=stepwell.schedule(active=1, repeat=4)) as profiler:
                    for index, batch in run.steps(range(5)): profiler.step()
            """, variables={"PYTHONPATH": _TORCH, "STEPWELL_TRACES": str(self.folder / "kept"), "STEPWELL_TRACES_KEEP": "2"})
        kept = sorted(path.name for path in (self.folder / "kept").iterdir() if path.name.endswith(".pt.trace.json"))
        self.assertEqual(["ep0-ba3-rank0.pt.trace.json", "ep0-ba4-rank0.pt.trace.json"], kept, err)

    def test_what_a_signals_handler_ends_within_a_flush_waits_for_nothing(self):
        for ends in ("run.off()", "profiler.stop()"):
            with self.subTest(ends):
                self.assert_ends_within_a_flush(ends)

    def assert_ends_within_a_flush(self, ends: str) -> None:
        out, err = self.run_trial("""
            import threading, torch, stepwell
            from stepwell import _torch_export
            write, gate = _torch_export.write, threading.Event()
            def slowly(*arguments): gate.wait(20); write(*arguments)
            _torch_export.write = slowly
            with stepwell.init() as run:
                with stepwell.torch_profiler(schedule=stepwell.schedule(active=1, repeat=1)) as profiler:
                    for index, batch in run.steps(range(2)): profiler.step()
                    with run._lock:     # which flush() holds
                        ENDS
                    print("goes on", gate.is_set())
                    gate.set()
            """.replace("ENDS", ends), variables={"PYTHONPATH": _TORCH, "TMPDIR": str(self.folder)})
        self.assertEqual("goes on False\n", out, err)
        # Who still takes it stores it; who is there no more takes nothing.
        self.assertTrue(self.eventually(lambda: not list(self.folder.iterdir())), list(self.folder.iterdir()))

    def test_a_window_that_begins_while_the_one_before_is_written_is_a_trace_of_its_own(self):
        out, err = self.run_trial("""
            import json, os, threading, torch, stepwell
            torch.set_num_threads(1)
            ends = threading.Event()
            def other():    # computes, and is seen, all the while
                while not ends.wait(0.001): leaf = torch.ones(8, 8, requires_grad=True); (leaf @ leaf).sum().backward()
            thread = threading.Thread(target=other)
            thread.start()
            with stepwell.torch_profiler(schedule=lambda batch: batch < 60 and stepwell.schedule(active=1)(batch),
                                         directory="windows", record_shapes=True) as profiler:
                for index in range(61):
                    with torch.profiler.record_function(f"window {index}"):
                        for _ in range(index % 7):
                            leaf = torch.ones(8, 8, requires_grad=True); (leaf @ leaf).sum().backward()
                    profiler.step()
            ends.set(); thread.join()
            seen = {}
            for name in os.listdir("windows"):
                with open("windows/" + name) as file: events = json.load(file)["traceEvents"]
                seen[name] = sorted({event["name"] for event in events if event.get("ph") == "X" and "window " in event["name"]})
            print(seen == {f"ep0-ba{index + 1}-rank0.pt.trace.json": [f"window {index}"] for index in range(60)} or seen)
            """.replace('"windows', f'"{self.folder}/windows'), variables={"PYTHONPATH": _TORCH, "TMPDIR": str(self.folder)})
        self.assertEqual("True\n", out, err)

    def test_windows_of_a_function_that_says_whether_are_traces_each(self):
        process = self.start("""
            import torch, stepwell
            with stepwell.init() as run:
                with stepwell.torch_profiler(schedule=lambda batch: batch % 4 >= 2) as profiler:
                    for told in ({}, {"epoch": 5}):
                        for index, batch in run.steps(range(4), **told):
                            torch.mm(torch.ones(2, 2), torch.ones(2, 2))
                            profiler.step()
            """, variables={"PYTHONPATH": _TORCH, "TMPDIR": str(self.folder)})
        out, err = process.communicate(timeout=2 * WAIT_S)
        self.assertEqual(0, process.returncode, out + err)

        def windows() -> list[list[int]]:
            headers = [trace["header"] for trace in self.traces() if trace["state"] == "complete"]
            return sorted([header["first_batch"], header["last_batch"]] for header in headers)

        self.assertTrue(self.eventually(lambda: len(windows()) == 2), (windows(), err))
        self.assertEqual([[2, 3], [6, 7]], windows())
        first, second = sorted((trace["header"] for trace in self.traces()), key=lambda header: header["first_batch"])
        self.assertEqual(["ep0-ba4-rank0.pt.trace.json", "ep5-ba8-rank0.pt.trace.json"],
                         [header["name"][:27] for header in (first, second)])  # fmt: skip
        self.assertEqual(5, second["epoch"])

    def test_what_torch_saw_goes_once_it_is_stored_where_nobody_named_a_folder(self):
        process = self.train(rank=0, directory="")
        out, err = process.communicate(timeout=2 * WAIT_S)
        self.assertEqual(0, process.returncode, out + err)
        self.assertTrue(self.eventually(lambda: [trace["state"] for trace in self.traces()] == ["complete"]), self.traces())
        self.assertTrue(self.eventually(lambda: not list(self.folder.glob("stepwell-traces-*"))))


@unittest.skipUnless(_TORCH, "torch is not installed: deploy/install_packages.sh torch")
class OtherProfilersTest(ProductTest):
    """Profilers of torch's that the program begins itself."""

    _PROGRAM = """
        import os, stepwell, torch
        from stepwell import _mirroring
        run = stepwell.init(HOOKS)
        leaf = torch.randn(4, requires_grad=True)
        def train(name):
            with run.scope(name):
                leaf.sum().backward()
        def seen(profile):
            return sorted({event.name for event in profile.function_events} & {"train_batch", "backward", "before", "after"})
        train("before")
        with torch.profiler.profile() as profile:
            train("train_batch")
            if os.fork() == 0:  # whose profiler nobody ends
                print("child:", *_mirroring._wishes, flush=True); os._exit(0)
            os.wait()
        train("after")
        print(seen(profile.profiler))
        with torch.autograd.profiler.profile() as profile:
            train("train_batch")
            try:
                if torch.__version__.startswith("1."): torch.autograd.profiler.profile().__enter__()
                else: raise RuntimeError    # Kineto begins the second, and the first has lost what it saw
            except RuntimeError: print("one at a time, as torch says")
            train("after")
        print(seen(profile))
        run.close()
        """

    def test_scopes_are_in_each_while_it_records(self):
        out, err = self.run_trial(self._PROGRAM.replace("HOOKS", ""), variables={"PYTHONPATH": _TORCH})
        self.assertEqual("child:\n['backward', 'train_batch']\none at a time, as torch says\n['after', 'backward', 'train_batch']\n", out)
        self.assertNotIn("not in torch's profiler", err)
        self.assertEqual({"train_batch": 2, "before": 1, "after": 2},
                         {name: count for name, count in self.counts().items() if "backward" not in name})  # fmt: skip

    def test_who_wants_no_hooks_has_none_in_profilers(self):
        out, _ = self.run_trial(self._PROGRAM.replace("HOOKS", "hooks=False"), variables={"PYTHONPATH": _TORCH})
        self.assertEqual("child:\n[]\none at a time, as torch says\n[]\n", out)


class MirrorTest(TracesTest):
    """Without torch: what another profiler is told."""

    def test_scopes_are_told_while_they_are_mirrored_and_what_that_raises_is_not_the_trainings(self):
        out, err = self.run_trial("""
            import asyncio, stepwell
            from stepwell._load import core
            told = []
            def begin(name):
                told.append(name)
                if name == "bad": raise ValueError
                return name
            with stepwell.init() as run:
                with run.scope("before"): pass
                core.mirror_scopes(begin, lambda name: told.append("/" + name))
                with run.scope("a"), run.scope("b"): pass
                with run.scope("bad"): print("goes on")
                kept = run.scope("kept")
                with kept:
                    with kept: pass
                run.scope("called")(lambda: 1)()
                async def alone():
                    async with run.scope("task"): pass
                asyncio.run(alone())
                try:
                    with run.scope("raises"): raise KeyError("theirs")
                except KeyError as error: print(error)
                last = run.scope("open")
                last.__enter__()
                core.mirror_scopes(None, None)
                last.__exit__(None, None, None)
                with run.scope("after"): pass
            print(told)
            """)
        self.assertEqual("goes on\n'theirs'\n" + str([
            "a", "b", "/b", "/a", "bad", "kept", "kept", "/kept", "/kept", "called", "/called", "raises", "/raises",
            "open", "/open"]) + "\n", out)  # fmt: skip
        self.assertNotIn("Error", err)
        self.assertEqual(1, self.counts()["after"])

    def test_an_interrupt_within_a_mirror_is_the_trainings(self):
        out, err = self.run_trial("""
            import stepwell
            from stepwell._load import core
            def interrupted(_): raise KeyboardInterrupt
            with stepwell.init() as run:
                for name, begin, end in ("entered", interrupted, print), ("left", str, interrupted):
                    core.mirror_scopes(begin, end)
                    try:
                        with run.scope(name): print("within")
                    except KeyboardInterrupt:
                        print(name, core.scope_path())
                core.mirror_scopes(None, None)
                with run.scope("after"): pass
            """)
        self.assertEqual("entered 0\nwithin\nleft 0\n", out)
        self.assertNotIn("Error", err)
        self.assertEqual(1, self.counts()["after"])

    def test_what_other_profilers_wrote_is_handed_over(self):
        with tempfile.TemporaryDirectory(dir=product.folder()) as name:
            folder = pathlib.Path(name)
            (folder / "flops.txt").write_text("params: 7")
            (folder / "host.xplane.pb").write_bytes(b"\x0a\x03xyz")
            self.run_trial(f"""
                import os, stepwell
                os.chdir({name!r})
                with stepwell.init() as run:
                    run.record("loss", 1)
                    assert run.upload_trace("flops.txt", first_batch=5, last_batch=6)
                    assert run.upload_trace("{name}/host.xplane.pb", epoch=1)
                    for wrong in ("", 7):
                        try: run.upload_trace(wrong)
                        except (TypeError, ValueError) as error: print(error)
                """)
            told = ["name", "format", "first_batch", "last_batch", "epoch"]

            def found() -> list:
                return sorted([trace["header"].get(key) for key in told] for trace in self.traces()
                              if trace["state"] == "complete")  # fmt: skip

            wanted = [["flops.txt", "text", 5, 6, None], ["host.xplane.pb", "xplane", None, None, 1]]
            self.assertTrue(self.eventually(lambda: found() == wanted), self.traces())
            self.assertTrue((folder / "flops.txt").exists())

    def test_wrong_options_are_told(self):
        out, _ = self.run_trial("""
            import sys, types, stepwell
            fake = types.ModuleType("torch"); fake.profiler = types.SimpleNamespace()
            sys.modules["torch"] = fake
            for options in ({"on_trace_ready": print}, {"schedule": 7}, {"directory": 7}):
                try: stepwell.torch_profiler(**options)
                except (TypeError, ValueError) as error: print(type(error).__name__, error)
            """)
        self.assertEqual(3, out.count("allowed: "), out)


if __name__ == "__main__":
    unittest.main()
