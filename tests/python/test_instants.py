"""Moments of a training are events of its trace, and no samples."""

import json
import pathlib
import subprocess
import tempfile
import time
import unittest

import product
from product import ProductTest


class InstantsTest(ProductTest):
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
            deadline = time.monotonic() + product.WAIT_S
            while not list(folder.glob("ep*.pftrace")) and time.monotonic() < deadline:
                time.sleep(0.05)
            (recorded,) = folder.glob("ep*.pftrace")
            done = subprocess.run([product.program(), "trace", "merge", str(recorded), "--output", name + "/all.json"],
                                  stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=product.WAIT_S)  # fmt: skip
            self.assertEqual(0, done.returncode, done.stdout + done.stderr)
            events = json.loads((folder / "all.json").read_text())["traceEvents"]
            moments = [event for event in events if event["ph"] == "i" and "input" not in event["name"]]
            moments = [event for event in moments if event.get("cat") != "__metadata"]
            self.assertEqual([("begun", None), ("checkpoint", 4), ("checkpoint", 5), ("checkpoint", None)],
                             [(event["name"], event["args"].get("batch")) for event in moments])  # fmt: skip
            work = [event for event in events if event["ph"] == "X" and event["name"] == "work"]
            for moment, around in zip(moments[1:3], work):
                self.assertEqual((around["pid"], around["tid"]), (moment["pid"], moment["tid"]))
                self.assertEqual(around["args"]["thread"], moment["args"]["thread"])
                self.assertGreaterEqual(moment["ts"], around["ts"])


if __name__ == "__main__":
    unittest.main()
