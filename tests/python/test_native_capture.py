"""`stepwell capture --native`: torch.profiler over steps of trainings that were told nothing, asked for by a person."""

import datetime
import json
import os
import pathlib
import subprocess
import tempfile
import textwrap
import unittest

import product
from product import WAIT_S
from test_torch_profiler import _TORCH, Slices, TracesTest

# Untouched: it knows nothing of Stepwell. It goes on until a file is there.
_TOGETHER = """
import mmap, os, struct, sys, time
end = os.environ["TOGETHER"] + "/end"
shared = mmap.mmap(os.open(os.environ["TOGETHER"] + "/steps", os.O_RDWR), 24)

def together(step):     # as ranks that reduce their gradients: none is further ahead than by a step
    struct.pack_into("q", shared, 8 * int(os.environ["RANK"]), step)
    while min(struct.unpack("3q", shared[:])) < step - 1 and not os.path.exists(end): time.sleep(0.001)
    time.sleep(0.02)
    return not os.path.exists(end)
"""
_SCRIPT = _TOGETHER + """
import torch
from torch.utils.data import DataLoader

torch.set_num_threads(1)
model = torch.nn.Linear(8, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
step = 0
while not os.path.exists(end):
    for batch in DataLoader([torch.randn(8) for _ in range(20_000)], batch_size=2):
        loss = model(batch).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
        if not together(step): break
print("done")
"""
_WITHOUT_TORCH = _TOGETHER + """
import stepwell
with stepwell.init() as run:
    for index, batch in run.steps(iter(int, 1)):
        if not together(index + 1): break
print("done")
"""
_SAYS_ITS_EPOCH = """
import os, time, torch, stepwell
torch.set_num_threads(1)
with stepwell.init() as run:
    for index, batch in run.steps(iter(int, 1), epoch=3):
        torch.mm(torch.ones(8, 8), torch.ones(8, 8))
        time.sleep(0.02)
        if os.path.exists(os.environ["END"]): break
"""
_STEPS = 4
# What we promise, from the moment at which the master hears of it: it takes no answer of an agent's that would be too late for
# that. How long a command needs to begin on a machine with other things to do is none of it.
_BEGUN_S = 2.0


@unittest.skipUnless(_TORCH, "torch is not installed: deploy/install_packages.sh torch")
class NativeCaptureTest(TracesTest):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(dir=product.folder())
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        self.end = self.folder / "end"
        (self.folder / "train.py").write_text(_SCRIPT)
        (self.folder / "steps").write_bytes(bytes(24))

    def environment(self, rank: int) -> dict[str, str]:
        inherited = {key: value for key, value in os.environ.items() if not key.startswith(("STEPWELL_", "PYTHON"))}
        return {**inherited, "STEPWELL_SERVER": product.server(), "STEPWELL_SPOOL_DIR": os.environ["PRODUCT_SPOOL"],
                "STEPWELL_AGENT": product.program(), "STEPWELL_SYSTEM_METRICS": "0", "STEPWELL_ATTEMPT_KEY": "one",
                "RANK": str(rank), "WORLD_SIZE": "3", "TOGETHER": str(self.folder), "TMPDIR": str(self.folder), "PYTHONPATH": _TORCH}  # fmt: skip

    def run_script(self, rank: int) -> subprocess.Popen[str]:
        words = [product.program(), "run", "--trial", self.trial, product.python(), "train.py"]
        return subprocess.Popen(words, env=self.environment(rank), cwd=self.folder, stdin=subprocess.DEVNULL, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)  # fmt: skip

    def capture(self, *words: str) -> tuple[int, dict]:
        done = subprocess.run([product.program(), "capture", self.trial, "--server", product.server(), "--steps", str(_STEPS),
                               "--json", "--timeout", "40s", *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=2 * WAIT_S)  # fmt: skip
        return done.returncode, json.loads(done.stdout) if done.stdout.startswith("{") else {"told": done.stderr}

    def heard_us(self) -> float:
        """When the master heard of the newest capture, by its log."""
        began = [line for line in (product.folder() / "master.log").read_text(errors="replace").splitlines()
                 if "capture_began" in line]  # fmt: skip
        heard = datetime.datetime.fromisoformat(began[-1][began[-1].index("20"):].split("Z")[0] + "+00:00")
        return heard.timestamp() * 1e6

    def assert_serves(self, rank: int) -> None:
        """Until it can be captured alone."""
        last: list[object] = []

        def is_captured() -> bool:
            last[:] = self.capture("--ranks", str(rank))
            return last[0] == 0

        self.assertTrue(self.eventually(is_captured), last)

    def test_untouched_ranks_give_the_same_steps_and_who_has_no_torch_says_so(self):
        processes = [self.run_script(0), self.run_script(1)]
        processes.append(self.start(_WITHOUT_TORCH, variables={"RANK": "2", "WORLD_SIZE": "3", "STEPWELL_ATTEMPT_KEY": "one",
                                                               "TOGETHER": str(self.folder)}))  # fmt: skip
        try:
            for rank in range(3):
                self.assert_serves(rank)
            code, captured = self.capture("--native")
            heard_us = self.heard_us()
        finally:
            self.end.touch()
            ended = [process.communicate(timeout=2 * WAIT_S) for process in processes]
        self.assertEqual(1, code, captured)
        self.assertEqual(["done\n"] * 3, [out for out, _ in ended], ended)
        for _, err in ended:
            self.assertNotIn("Warning", err)
            self.assertNotIn("profiler", err)
        first = captured["first_batch"]
        batches = list(range(first, first + _STEPS))
        headers = {trace["trace_no"]: trace["header"] for trace in self.traces()}
        self.assertEqual("NO_PROFILER", captured["ranks"][2]["native"]["reason"], captured)
        numbers = []
        for rank in captured["ranks"]:
            self.assertEqual("stored", rank["state"], rank)
            told = [rank, rank["native"]] if rank["rank"] < 2 else [rank]
            for each in told:
                self.assertEqual(["stored", _STEPS], [each["state"], each["step_count"]], each)
                header = headers[each["trace_no"]]
                self.assertEqual([first, first + _STEPS - 1, rank["rank"]],
                                 [header["first_batch"], header["last_batch"], header["rank"]])  # fmt: skip
                numbers.append(str(each["trace_no"]))
        merged = self.folder / "merged.json"
        subprocess.run([product.program(), "trace", "merge", *numbers, "--trial", self.trial, "--server", product.server(),
                        "--output", str(merged)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, check=True, timeout=WAIT_S)  # fmt: skip
        trace = json.loads(merged.read_text())
        slices, base_us = Slices(trace), trace.get("baseTimeNanoseconds", 0) / 1000
        begun_s: list[float] = []
        for rank in range(2):
            native = [(name, begin, end) for name, begin, end, args in slices.of_rank(rank) if "batch" not in args]
            steps = [(begin, end) for name, begin, end in native if name.startswith("ProfilerStep#")]
            self.assertEqual([f"ProfilerStep#{batch}" for batch in batches],
                             [name for name, _, _ in native if name.startswith("ProfilerStep#")])  # fmt: skip
            begun_s.append((steps[0][0] + base_us - heard_us) / 1e6)
            ours = {args["batch"]: (begin, end) for name, begin, end, args in slices.of_rank(rank)
                    if name == "step" and "batch" in args}  # fmt: skip
            self.assertEqual(batches, sorted(ours))
            # Each operator lies in one of the steps, and each step has its own.
            for name in ("aten::addmm", "backward"):
                middles = [(begin + end) / 2 for found, begin, end in native if found == name]
                within = [batch for middle in middles for batch, (begin, end) in ours.items() if begin <= middle <= end]
                self.assertEqual(batches, within, name)
        print(f"began {max(begun_s):.2f} s after the call")
        self.assertLess(max(begun_s), _BEGUN_S)
        self.assertGreater(max(begun_s), 0, "the log tells of another time")
        self.assertEqual([], [path.name for path in self.folder.iterdir() if path.name.startswith("stepwell-traces-")])

    def test_a_training_that_says_its_epoch_is_captured_as_one_that_says_none(self):
        process = self.start(_SAYS_ITS_EPOCH, variables={"PYTHONPATH": _TORCH, "END": str(self.end), "TMPDIR": str(self.folder)})
        try:
            self.assert_serves(0)
            code, captured = self.capture("--native")
        finally:
            self.end.touch()
            out, err = process.communicate(timeout=2 * WAIT_S)
        self.assertEqual(0, process.returncode, out + err)
        self.assertEqual(0, code, captured)
        rank, = captured["ranks"]
        first = captured["first_batch"]
        headers = {trace["trace_no"]: trace["header"] for trace in self.traces()}
        for each in (rank, rank["native"]):
            self.assertEqual(["stored", _STEPS], [each["state"], each["step_count"]], captured)
            header = headers[each["trace_no"]]
            self.assertEqual([3, first, first + _STEPS - 1],
                             [header["epoch"], header["first_batch"], header["last_batch"]])  # fmt: skip


@unittest.skipUnless(_TORCH, "torch is not installed: deploy/install_packages.sh torch")
class AskedProcessTest(TracesTest):
    """The process alone, asked as the agent asks: by its header (client/recorder/src/spool_format.h)."""

    _BEGIN = """
        import glob, os, struct, sys, time, warnings, torch, stepwell
        spool = os.environ["STEPWELL_SPOOL_DIR"]
        NAMES = "none running handed_over no_profiler busy late failed not_written no_steps".split()
        def at(do):
            descriptor = os.open(glob.glob(spool + "/f1/*-*/header")[-1], os.O_RDWR)
            try: return do(descriptor)
            finally: os.close(descriptor)
        def ask(request, first, count):
            at(lambda file: os.pwrite(file, struct.pack("<Q", first << 32 | count), 144))
            at(lambda file: os.pwrite(file, struct.pack("<I", request), 132))
        def answer():
            word, = struct.unpack("<Q", at(lambda file: os.pread(file, 8, 200)))
            return f"{word >> 32} {NAMES[word >> 24 & 255]} {word & 0xffffff}"
        def settled():
            until = time.monotonic() + 20
            while "running" in answer() and time.monotonic() < until: time.sleep(0.01)
            return answer()
        def work(): return torch.mm(torch.ones(8, 8), torch.ones(8, 8))
        """

    def ask(self, source: str, **variables: str) -> tuple[list[str], str, list[dict]]:
        with tempfile.TemporaryDirectory(dir=product.folder()) as name:
            spool = pathlib.Path(name) / "spool"
            spool.mkdir(mode=0o700)
            out, err = self.run_trial(textwrap.dedent(self._BEGIN) + textwrap.dedent(source), variables={
                "PYTHONPATH": _TORCH, "STEPWELL_SERVER": "offline", "STEPWELL_SPOOL_DIR": str(spool), "STEPWELL_EXIT_WAIT": "0",
                "STEPWELL_AGENT": "/no/agent", "TMPDIR": name, "STEPWELL_QUIET": "1", **variables})  # fmt: skip
            notes = [json.loads(path.read_text()) for path in (spool / "f1" / "traces").glob("*.json")]
            traces = [json.loads(pathlib.Path(note["path"]).read_text()) for note in notes]
            for note, trace in zip(notes, traces):
                note["steps"] = [event["name"] for event in trace["traceEvents"] if event["name"].startswith("ProfilerStep")]
                note["name"] = os.path.basename(note["path"])
            kept = {os.path.dirname(note["path"]) for note in notes}
            self.assertEqual(kept, {str(path) for path in pathlib.Path(name).glob("stepwell-traces-*")})
            return out.splitlines(), err, sorted(notes, key=lambda note: note["first_batch"])

    def test_it_has_exactly_the_steps_and_each_other_answer_says_why(self):
        said, err, notes = self.ask("""
            with stepwell.init() as run:
                def steps(count, **told):
                    for index, batch in run.steps(range(count), **told):
                        with run.scope("train_batch"): work()
                        yield index
                for index in steps(12):
                    if index == 2: ask(1, 5, 3)
                print(settled())
                for index in steps(3):
                    if index == 13: ask(2, 7, 3)
                print(settled())
                profile = torch.profiler.profile()
                for index in steps(4):
                    if index == 15: profile.start(); ask(3, 17, 1)
                    if index == 18: profile.stop()
                print(settled())
                for index in steps(8):
                    if index == 19: ask(4, 21, 5)
                    if index == 23: profile = torch.profiler.profile(); profile.start()
                profile.stop()
                print(settled(), [event.name for event in profile.profiler.function_events].count("train_batch"))
                for index in steps(4, epoch=3):
                    if index == 27: ask(5, 29, 100)
                print(settled(), len(torch.autograd.profiler_util.__name__) > 0)
                for index in steps(2):
                    if index == 31: ask(6, 33, 2)
                print(answer())
                for index in steps(2): pass
                print(settled())
                for index in steps(2):
                    if index == 35: ask(7, 36, 50)
                    if index == 36: run.flush(0)
            """)
        self.assertEqual(["1 handed_over 3", "2 late 0", "3 busy 0", "4 handed_over 2 3", "5 handed_over 2 True", "6 running 0",
                          "6 handed_over 2"], said)  # fmt: skip
        self.assertEqual("", err)
        self.assertEqual([(5, 7, "capture-ep0-ba8-rank0.pt.trace.json"), (21, 22, "capture-ep0-ba23-rank0.pt.trace.json"),
                          (29, 30, "capture-ep0-ba31-rank0.pt.trace.json"), (33, 34, "capture-ep0-ba35-rank0.pt.trace.json")],
                         [(note["first_batch"], note["last_batch"], note["name"]) for note in notes])  # fmt: skip
        self.assertEqual([-1, -1, 3, 3], [note["epoch"] for note in notes])
        for note in notes[:1] + notes[3:]:
            wanted = [f"ProfilerStep#{batch}" for batch in range(note["first_batch"], note["last_batch"] + 1)]
            self.assertEqual(wanted, note["steps"])

    def test_what_fails_is_told_and_the_training_goes_on(self):
        said, err, notes = self.ask("""
            import resource
            room = resource.getrlimit(resource.RLIMIT_FSIZE)
            with stepwell.init() as run:
                for index, batch in run.steps(range(6)):
                    for _ in range(50): work()
                    if index == 0: ask(1, 2, 2)
                    if index == 3: resource.setrlimit(resource.RLIMIT_FSIZE, (2000, room[1]))
                print(settled())
                resource.setrlimit(resource.RLIMIT_FSIZE, room)
                start, torch.profiler.profile.start = torch.profiler.profile.start, lambda self: 1 / 0
                for index, batch in run.steps(range(4)):
                    if index == 6: ask(2, 8, 2)
                print(settled())
                torch.profiler.profile.start = start
                stop = torch.profiler.profile.stop  # really: Kineto crashes at the end of a process that has one
                torch.profiler.profile.stop = lambda self: stop(self) or 1 / 0
                for index, batch in run.steps(range(4)):
                    if index == 10: ask(3, 12, 1)
                print(settled())
            print("done")
            """)
        self.assertEqual(["1 not_written 0", "2 failed 0", "3 failed 0", "done"], said)
        self.assertIn("what torch's profiler saw is lost", err)
        self.assertIn("is not captured: ZeroDivisionError", err)
        self.assertEqual([], notes)

    def test_it_ends_where_nobody_wants_it_any_more_and_the_next_one_is_taken_up(self):
        said, err, notes = self.ask("""
            with stepwell.init(hooks=False) as run:
                for index, batch in run.steps(range(30)):
                    work()
                    if index == 0: ask(1, 2, 1000)
                    if index == 4: ask(0, 0, 0)             # the caller gave up
                    if index == 6: print(settled()); ask(2, 8, 1000)
                    if index == 9: ask(3, 12, 2)            # another one, before that is over
                    if index == 14: print(settled()); ask(4, 16, 1000)
                    if index == 17:                         # theirs, of a program without hooks
                        with torch.autograd.profiler.profile() as profile: work()
                        print(settled(), torch.autograd._profiler_enabled()); ask(5, 20, 1)
                    if index == 21: print(settled()); ask(6, 24, 1)
                    if index == 22: ask(0, 0, 0)
            print("ends")
            """)
        self.assertEqual(["1 handed_over 3", "3 handed_over 2", "4 handed_over 1 False", "5 handed_over 1", "ends"], said)
        self.assertEqual("", err)
        self.assertEqual([(2, 4), (8, 9), (12, 13), (16, 16), (20, 20)],
                         [(note["first_batch"], note["last_batch"]) for note in notes])  # fmt: skip

    def test_another_thread_ends_with_it_and_one_that_profiles_ends_it(self):
        said, err, notes = self.ask("""
            import threading
            print(torch.profiler.kineto_available())
            with stepwell.init(hooks=False) as run:
                ask(1, 2, 1000)
                stuck = iter(run.steps(range(9)))
                def other():
                    for _ in range(4): next(stuck); work()
                thread = threading.Thread(target=other)
                thread.start(); thread.join()
                print(answer())
                def theirs():
                    with torch.autograd.profiler.profile(): work()
                for index, batch in run.steps(range(12)):
                    work()
                    if index == 4: print(answer()); ask(2, 6, 1000)
                    if index == 7:
                        thread = threading.Thread(target=theirs)
                        thread.start(); thread.join()
                        print(answer())
                    if index == 9: print(settled())
            """)
        if said.pop(0) == "True":  # of whose profilers there is no other in a process in which a thread ended with one
            self.assertEqual(["1 running 0", "1 no_steps 0", "2 failed 0", "2 failed 0"], said)
            return
        self.assertEqual(["1 running 0", "1 no_steps 0", "2 running 0", "2 handed_over 2"], said)
        self.assertNotIn("stepwell", err)  # torch itself tells of a profiler whose thread has ended
        self.assertEqual([(6, 7)], [(note["first_batch"], note["last_batch"]) for note in notes])

    def test_a_child_that_is_forked_within_gathers_nothing(self):
        said, err, notes = self.ask("""
            with stepwell.init() as run:
                for index, batch in run.steps(range(6)):
                    work()
                    if index == 0: ask(1, 2, 3)
                    if index == 3:
                        sys.stdout.flush()
                        if os.fork() == 0:
                            for _ in range(1000): work()
                            seen = [event.name() for event in torch.autograd._disable_profiler().events()]
                            print(seen.count("aten::mm"), flush=True); os._exit(0)
                        os.wait()
                print(settled())
            """)
        self.assertEqual("", err)
        self.assertEqual(2, len(said), said)
        self.assertLess(int(said[0]), 10)
        self.assertEqual("1 handed_over 3", said[1])

    def test_no_step_waits_for_what_is_written_and_the_end_waits_as_long_as_it_is_told(self):
        said, err, notes = self.ask("""
            from stepwell import _torch_export
            write = _torch_export.write
            def slowly(*arguments): time.sleep(3); write(*arguments)
            _torch_export.write = slowly
            slowest = [0.0]
            def timed(do, *arguments):
                began = time.monotonic(); do(*arguments); return time.monotonic() - began
            run = stepwell.init()
            for index, batch in run.steps(range(6)):
                work()
                if index == 0: ask(1, 2, 3)
                if index == 4: print(timed(run.off) < 1, timed(run.on) < 1)
            print(timed(run.close, 0.5) < 1.5)
            """, STEPWELL_EXIT_WAIT="60")
        self.assertEqual(["True True", "True"], said)
        self.assertEqual([(2, 3)], [(note["first_batch"], note["last_batch"]) for note in notes])

    def test_a_script_that_ends_within_hands_over_what_is_there(self):
        for end in ("sys.exit(0)", "run.close()"):
            said, err, notes = self.ask(f"""
                run = stepwell.init()
                for index, batch in run.steps(range(9)):
                    work()
                    if index == 0: ask(1, 2, 1000)
                    if index == 6: {end}
                """)
            self.assertEqual(("", [(2, 5)]), (err, [(note["first_batch"], note["last_batch"]) for note in notes]), end)

    def test_a_torch_that_is_not_known_is_refused_and_one_that_raises_fails(self):
        said, err, notes = self.ask("""
            import types
            real, known = torch, torch.autograd.profiler
            enable = known._enable_profiler
            with stepwell.init(hooks=False) as run:
                for index, batch in run.steps(range(12)):
                    if index == 0: ask(1, 2, 3); del known._enable_profiler
                    if index == 3: print(answer()); known._enable_profiler = enable
                    if index == 4: ask(2, 6, 3); sys.modules["torch"] = types.SimpleNamespace(autograd=None)
                    if index == 7: print(answer()); sys.modules["torch"] = real; ask(3, 9, 1)
                    work()
                print(settled(), known._enable_profiler is enable)
            """)
        self.assertEqual(["1 no_profiler 0", "2 failed 0", "3 handed_over 1 True"], said)
        self.assertIn("is not captured: AttributeError", err)
        said, err, notes = self.ask("""
            sys.modules["stepwell._native_capture"] = None  # as where it cannot be loaded
            with stepwell.init() as run:
                for index, batch in run.steps(range(5)):
                    if index == 0: ask(1, 2, 3)
                print(answer())
            """)
        self.assertEqual(["1 failed 0"], said)
        self.assertIn("is not captured: ", err)

    def test_an_interrupt_within_is_the_trainings(self):
        said, err, notes = self.ask("""
            import signal
            def interrupted(self): raise SystemExit(3)
            torch.profiler.profile.start = interrupted
            with stepwell.init() as run:
                try:
                    for index, batch in run.steps(range(40)):
                        if index == 1: ask(1, 3, 2)
                except SystemExit as end:
                    print("ends with", end.code, index)
            """)
        self.assertEqual(1, len(said))
        self.assertRegex(said[0], "ends with 3 [23]")


if __name__ == "__main__":
    unittest.main()
