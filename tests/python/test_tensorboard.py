"""What `stepwell trace get --tensorboard` lays out, read by TensorBoard itself with torch's plugin."""

import functools
import json
import os
import pathlib
import re
import subprocess
import tempfile
import time
import unittest
import urllib.error
import urllib.parse
import urllib.request

import product
from product import WAIT_S
from test_torch_profiler import _TORCH, TracesTest

_VARIABLE = "STEPWELL_TENSORBOARD_PYTHON"  # that has both; tests/run.sh --long --only frameworks makes it
_TRAINING = """
    import time, torch, stepwell
    torch.set_num_threads(1)
    with stepwell.init() as run:
        schedule = stepwell.schedule(warmup=1, active=2, repeat=2)
        with stepwell.torch_profiler(schedule=schedule) as profiler:
            for index, batch in run.steps(range(6)):
                with run.scope("train_batch"):
                    torch.mm(torch.ones(64, 64), torch.ones(64, 64))
                    time.sleep(0.005)
                profiler.step()
    """


@functools.cache
def _reason_to_skip() -> str:
    if not _TORCH:
        return "torch is not installed: deploy/install_packages.sh torch"
    python = os.environ.get(_VARIABLE, "")
    if not python:
        return f"{_VARIABLE} names no interpreter; tests/run.sh --long --only frameworks makes one"
    done = subprocess.run([python, "-c", "import tensorboard, torch_tb_profiler"], stdin=subprocess.DEVNULL,
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip
    return "" if done.returncode == 0 else f"{python} has no tensorboard with torch_tb_profiler"


class TensorBoardTest(TracesTest):
    def setUp(self):
        if _reason_to_skip():
            self.skipTest(_reason_to_skip())
        scratch = tempfile.TemporaryDirectory(dir=product.folder())
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)

    def serve(self) -> str:
        """TensorBoard over the folder; where it listens."""
        log = self.folder / "tensorboard.log"
        with log.open("wb") as output:
            process = subprocess.Popen([os.environ[_VARIABLE], "-m", "tensorboard.main", "--logdir", str(self.folder / "logs"), "--port",
                                        "0", "--host", "127.0.0.1"], stdin=subprocess.DEVNULL, stdout=output, stderr=output)  # fmt: skip

        def stop() -> None:
            process.terminate()
            process.wait(WAIT_S)

        self.addCleanup(stop)
        found: list[str] = []

        def is_there() -> bool:
            found[:] = re.findall(r"http://127\.0\.0\.1:\d+", log.read_text(errors="replace"))
            return bool(found)

        self.assertTrue(self.eventually(is_there), log.read_text(errors="replace"))
        return found[0]

    def ask(self, address: str, route: str, **values: str) -> object:
        """Of torch's plugin."""
        url = f"{address}/data/plugin/pytorch_profiler/{route}?{urllib.parse.urlencode(values)}"
        deadline = time.monotonic() + WAIT_S
        while True:
            try:
                with urllib.request.urlopen(url, timeout=WAIT_S) as answer:
                    return json.loads(answer.read())
            except urllib.error.HTTPError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.2)

    def test_its_plugin_finds_the_workers_the_windows_and_the_operators(self):
        for rank in range(2):
            self.run_trial(_TRAINING, variables={"PYTHONPATH": _TORCH, "RANK": str(rank), "WORLD_SIZE": "2",
                                                 "STEPWELL_ATTEMPT_KEY": "one", "TMPDIR": str(self.folder)})  # fmt: skip
        self.assertTrue(self.eventually(lambda: len([each for each in self.traces() if each["state"] == "complete"]) == 4),
                        self.traces())  # fmt: skip
        done = subprocess.run([product.program(), "trace", "get", self.trial, "--server", product.server(), "--tensorboard",
                               str(self.folder / "logs")], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=WAIT_S)  # fmt: skip
        self.assertEqual(0, done.returncode, done.stdout)
        address = self.serve()
        runs: list[dict] = []

        def is_loaded() -> bool:
            runs[:] = [self.ask(address, "runs")]
            return bool(runs[0]["runs"]) and not runs[0]["loading"]

        self.assertTrue(self.eventually(is_loaded), runs)
        run = self.trial.replace(".", "_")  # a folder's name
        self.assertEqual([run], runs[0]["runs"])
        self.assertLessEqual({"Overview", "Operator", "Trace"}, set(self.ask(address, "views", run=run)))
        workers = self.ask(address, "workers", run=run, view="Overview")
        self.assertEqual(2, len(workers), workers)
        for worker in workers:
            spans = self.ask(address, "spans", run=run, worker=worker)
            self.assertEqual(2, len(spans), (worker, spans))
            for span in spans:
                place = {"run": run, "worker": worker, "span": span}
                overview = self.ask(address, "overview", **place)
                self.assertEqual(2, len(overview["steps"]["rows"]), overview["steps"])
                operators = self.ask(address, "operation/table", group_by="Operation", **place)
                calls = {row["name"]: row["calls"] for row in operators["data"]}
                self.assertEqual(2, calls["aten::mm"], calls)


if __name__ == "__main__":
    unittest.main()
