"""What the agent records as traces of a Python training: its moments, its cycles, what it used."""

import json
import pathlib
import subprocess
import tempfile
import time
import unittest

import product
from product import ProductTest


class TracesTest(ProductTest):
    def merged(self, folder: pathlib.Path, recorded: pathlib.Path) -> list[dict]:
        """Its events as Chrome's JSON."""
        out = str(folder / "all.json")
        done = subprocess.run([product.program(), "trace", "merge", str(recorded), "--output", out],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=product.WAIT_S)  # fmt: skip
        self.assertEqual(0, done.returncode, done.stdout + done.stderr)
        return json.loads(pathlib.Path(out).read_text())["traceEvents"]

    def uploaded(self) -> list[str]:
        done = subprocess.run([product.program(), "trace", "list", self.trial, "--server", product.server(), "--json"],
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              timeout=product.WAIT_S)  # fmt: skip
        traces = json.loads(done.stdout).get("traces", []) if done.returncode == 0 else []
        return [trace["header"]["name"] for trace in traces if trace["state"] == "complete"]

    def finished(self, folder: pathlib.Path, count: int) -> list[str]:
        deadline = time.monotonic() + product.WAIT_S
        while len(list(folder.glob("ep*.pftrace"))) < count and time.monotonic() < deadline:
            time.sleep(0.05)
        return sorted(path.name for path in folder.iterdir())

    def test_a_long_run_has_a_file_for_each_cycle_with_what_its_process_used(self):
        with tempfile.TemporaryDirectory(dir=product.folder()) as name:
            folder = pathlib.Path(name)
            self.run_trial("""
                import stepwell, time
                with stepwell.init() as run:
                    for batch_index, _ in run.steps(range(17), start=8):
                        if batch_index == 22: time.sleep(2.5)
                """, variables={"STEPWELL_TRACES": name, "STEPWELL_TRACES_UPLOAD": "0", "STEPWELL_TRACES_STEPS": "10",
                                "STEPWELL_SYSTEM_METRICS": "1"})  # fmt: skip
            names = [f"ep0-ba{batch}-rank0.pftrace" for batch in (10, 20, 25)]
            self.assertEqual(names, self.finished(folder, 3))
            for file, batches in zip(names, (range(8, 10), range(10, 20), range(20, 25))):
                events = self.merged(folder, folder / file)
                steps = [event for event in events if event["ph"] == "X" and event["name"] == "step"]
                self.assertEqual(list(batches), sorted(event["args"]["batch"] for event in steps))
            used = [event for event in events if event["ph"] == "C" and "memory_process_resident" in event["name"]]
            self.assertTrue(used)
            self.assertGreater(used[0]["args"]["value"], 1e6)
            # On the line of the spans: within the step that waited, or behind it.
            first = min(event["ts"] for event in steps)
            self.assertTrue(all(first <= event["ts"] <= first + 60e6 for event in used), used)

    def test_a_run_that_ends_with_a_cycle_has_no_further_file_and_its_last_is_kept(self):
        with tempfile.TemporaryDirectory(dir=product.folder()) as name:
            folder = pathlib.Path(name)
            self.run_trial("""
                import stepwell, time
                with stepwell.init() as run:
                    for batch_index, _ in run.steps(range(20)):
                        time.sleep(0.02)
                    with run.scope("evaluate"): time.sleep(0.5)  # some drains of an agent
                """, variables={"STEPWELL_TRACES": name, "STEPWELL_TRACES_STEPS": "10", "STEPWELL_TRACES_KEEP": "1"})  # fmt: skip
            last = "ep0-ba20-rank0.pftrace"
            self.assertTrue(self.eventually(lambda: last in self.uploaded()), self.uploaded())
            self.assertLessEqual(set(self.uploaded()), {"ep0-ba10-rank0.pftrace", last})
            self.assertEqual([last], sorted(path.name for path in folder.iterdir()))
            spans = [event for event in self.merged(folder, folder / last) if event["ph"] == "X"]
            self.assertEqual(list(range(10, 20)), [each["args"]["batch"] for each in spans if each["name"] == "step"])
            outside = [each["name"] for each in spans if "batch" not in each["args"]]
            self.assertEqual(["dataloader_next", "evaluate"], outside)

    def test_a_moment_is_in_the_trace_with_its_batch_and_in_no_timing(self):
        with tempfile.TemporaryDirectory(dir=product.folder()) as name:
            folder = pathlib.Path(name)
            out, err = self.run_trial("""
                import stepwell
                with stepwell.init() as run:
                    run.instant("begun")
                    for batch_index, _ in run.steps("ab", start=4):
                        with run.scope("work"): run.instant("checkpoint")
                    run.instant(name="checkpoint")
                    for wrong in ((), ("a", "b"), (7,), ("a/b",)): print(run.instant(*wrong))
                """, variables={"STEPWELL_TRACES": name, "STEPWELL_TRACES_UPLOAD": "0"})  # fmt: skip
            self.assertEqual("None\n" * 4, out)
            self.assertIn("instant() takes one argument, name", err)
            self.assertNotIn("checkpoint", self.counts())
            (recorded,) = self.finished(folder, 1)
            events = self.merged(folder, folder / recorded)
            moments = [event for event in events if event["ph"] == "i" and "input" not in event["name"]]
            moments = [event for event in moments if event.get("cat") != "__metadata"]
            self.assertEqual([("begun", None), ("checkpoint", 4), ("checkpoint", 5), ("checkpoint", None)],
                             [(event["name"], event["args"].get("batch")) for event in moments])  # fmt: skip
            work = [event for event in events if event["ph"] == "X" and event["name"] == "work"]
            self.assertEqual(2, len(work))
            for moment, around in zip(moments[1:3], work):
                self.assertEqual((around["pid"], around["tid"]), (moment["pid"], moment["tid"]))
                self.assertEqual(around["args"]["thread"], moment["args"]["thread"])
                self.assertGreaterEqual(moment["ts"], around["ts"])
                self.assertLessEqual(moment["ts"], around["ts"] + around["dur"])

    def test_each_window_of_a_schedule_is_a_file_with_its_last_batch_whole(self):
        with tempfile.TemporaryDirectory(dir=product.folder()) as name:
            folder = pathlib.Path(name)
            self.run_trial("""
                import stepwell
                with stepwell.init(schedule=stepwell.schedule(wait=1, warmup=1, active=4, repeat=2)) as run:
                    for index, _ in run.steps(range(20)):
                        with run.scope("train_batch"):
                            with run.scope("forward"): pass
                            run.instant("between")
                            with run.scope("backward"): pass
                """, variables={"STEPWELL_TRACES": name, "STEPWELL_TRACES_UPLOAD": "0"})  # fmt: skip
            names = [f"ep0-ba{batch}-rank0.pftrace" for batch in (6, 12)]
            self.assertEqual(sorted(names), self.finished(folder, 2))
            for file, batches in zip(names, ([1, 2, 3, 4, 5], [7, 8, 9, 10, 11])):
                events = self.merged(folder, folder / file)
                self.assertEqual([], [event for event in events if event["ph"] in "BE"], file)  # each has its end
                spans = [event for event in events if event["ph"] == "X"]
                of = {name: [event for event in spans if event["name"] == name and "batch" in event["args"]]
                      for name in ("step", "dataloader_next", "train_batch", "forward", "backward")}  # fmt: skip
                for name, found in of.items():
                    self.assertEqual(batches, sorted(event["args"]["batch"] for event in found), (file, name))
                moments = [event["args"].get("batch") for event in events if event["name"] == "between"]
                self.assertEqual(batches, moments)
                # The last batch's parts lie within its step, and in nobody else's.
                steps = sorted(of["step"], key=lambda event: event["args"]["batch"])
                for part in (event for name, found in of.items() if name != "step" for event in found):
                    step = steps[part["args"]["batch"] - batches[0]]
                    self.assertLessEqual(step["ts"], part["ts"])
                    self.assertLessEqual(part["ts"] + part["dur"], step["ts"] + step["dur"] + 0.002)  # of nanoseconds, rounded

    def test_an_epochs_first_fetch_lies_in_it(self):
        with tempfile.TemporaryDirectory(dir=product.folder()) as name:
            folder = pathlib.Path(name)
            self.run_trial("""
                import stepwell
                class Failing:  # once
                    def __init__(self): self.left = [None, 4, 5]
                    def __iter__(self): return self
                    def __next__(self):
                        if not self.left: raise StopIteration
                        found = self.left.pop(0)
                        if found is None: raise OSError
                        return found
                with stepwell.init() as run:
                    for epoch in (3, 4):
                        for _ in run.steps("ab", epoch=epoch):
                            with run.scope("work"): pass
                    for _ in run.steps("", epoch=5): pass
                    steps = iter(run.steps(Failing(), epoch=6))
                    try: next(steps)
                    except OSError: pass
                    for _ in steps: pass
                """, variables={"STEPWELL_TRACES": name, "STEPWELL_TRACES_UPLOAD": "0"})  # fmt: skip
            (recorded,) = self.finished(folder, 1)
            events = [event for event in self.merged(folder, folder / recorded) if event["ph"] == "X"]
            wanted = [(0, 3), (1, 3), (2, 4), (3, 4), (4, 6), (5, 6)]
            for span in ("dataloader_next", "step"):
                self.assertEqual(wanted, [(event["args"]["batch"], event["args"].get("epoch")) for event in events
                                          if event["name"] == span and "batch" in event["args"]], span)  # fmt: skip
        self.assertEqual([(0, 3.0), (2, 4.0), (4, 6.0)],
                         sorted({(s.batch, s.value) for s in self.samples() if s.name == "epoch" and s.batch >= 0}))  # fmt: skip


if __name__ == "__main__":
    unittest.main()
