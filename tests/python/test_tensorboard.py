"""What `stepwell trace get --tensorboard` lays out, read by TensorBoard itself: with torch's plugin, and with XProf's, the profile plugin."""

import functools
import gzip
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error
import urllib.parse
import urllib.request

import frameworks
import product
from product import WAIT_S
from test_torch_profiler import _TORCH, TracesTest

_VARIABLE = "STEPWELL_TENSORBOARD_PYTHON"  # that has all of tensorboard.txt; tests/run.sh --long --only readers makes it
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
# By the page of docs/profilers, of JAX: two cycles of which its profiler sees three steps each.
_XLA_TRAINING = """
    import glob, os, jax, jax.numpy as jnp, stepwell
    step = jax.jit(lambda values: (values @ values).sum())
    values = jnp.ones((64, 64))
    step(values).block_until_ready()
    with stepwell.init() as run:
        for first in 0, 10:
            logs = f"{os.environ['FOLDER']}/rank{os.environ['RANK']}-{first}"
            with jax.profiler.trace(logs):
                for index in range(first, first + 3):
                    with jax.profiler.StepTraceAnnotation("train", step_num=index):
                        step(values).block_until_ready()
            for path in glob.glob(logs + "/plugins/profile/*/*.xplane.pb"):
                assert run.upload_trace(path, first_batch=first, last_batch=first + 2)
    """
# By the page of docs/profilers, of TensorFlow: the same two cycles.
_TENSORFLOW_TRAINING = """
    import glob, os, stepwell, tensorflow as tf
    from tensorflow.profiler import experimental as profiler
    step = tf.function(lambda values: tf.reduce_sum(values @ values))
    values = tf.ones((64, 64))
    step(values)
    with stepwell.init() as run:
        for first in 0, 10:
            logs = f"{os.environ['FOLDER']}/rank{os.environ['RANK']}-{first}"
            profiler.start(logs)
            for index in range(first, first + 3):
                with profiler.Trace("train", step_num=index, _r=1): step(values).numpy()
            profiler.stop()
            for path in glob.glob(logs + "/plugins/profile/*/*.xplane.pb"):
                assert run.upload_trace(path, first_batch=first, last_batch=first + 2)
    """
_TENSORFLOW = os.environ.get("STEPWELL_TENSORFLOW_PYTHON", "")  # that has tensorflow.txt; the same part makes it


@functools.cache
def _reason_to_skip(modules: str) -> str:
    python = os.environ.get(_VARIABLE, "")
    if not python:
        return f"{_VARIABLE} names no interpreter; tests/run.sh --long --only readers makes one"
    code = f"import sys; print(sys.version_info[:2]); import tensorboard, {modules}"
    done = subprocess.run([python, "-c", code], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          text=True)  # fmt: skip
    if done.returncode != 0:
        return f"{python} has no tensorboard with {modules}"
    return "" if done.stdout.splitlines()[0] == str(sys.version_info[:2]) else f"{python} is another Python"


class TensorBoardTest(TracesTest):
    plugin = ""
    modules = ""

    def setUp(self):
        if _reason_to_skip(self.modules):
            self.skipTest(_reason_to_skip(self.modules))
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

    def lay_out(self) -> None:
        done = subprocess.run([product.program(), "trace", "get", self.trial, "--server", product.server(), "--tensorboard",
                               str(self.folder / "logs")], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=WAIT_S)  # fmt: skip
        self.assertEqual(0, done.returncode, done.stdout)

    def await_stored(self, count: int) -> None:
        self.assertTrue(self.eventually(lambda: len([each for each in self.traces() if each["state"] == "complete"]) == count),
                        self.traces())  # fmt: skip

    def ask(self, address: str, route: str, **values: str) -> object:
        """Of the plugin."""
        url = f"{address}/data/plugin/{self.plugin}/{route}?{urllib.parse.urlencode(values)}"
        deadline = time.monotonic() + WAIT_S
        while True:
            try:
                with urllib.request.urlopen(url, timeout=WAIT_S) as answer:
                    said = answer.read()
                    return json.loads(gzip.decompress(said) if answer.headers.get("Content-Encoding") == "gzip" else said)
            except urllib.error.HTTPError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.2)


@unittest.skipUnless(_TORCH, "torch is not installed: deploy/install_packages.sh torch")
class TorchPluginTest(TensorBoardTest):
    plugin = "pytorch_profiler"
    modules = "torch_tb_profiler"

    def test_its_plugin_finds_the_workers_the_windows_and_the_operators(self):
        for rank in range(2):
            self.run_trial(_TRAINING, variables={"PYTHONPATH": _TORCH, "RANK": str(rank), "WORLD_SIZE": "2",
                                                 "STEPWELL_ATTEMPT_KEY": "one", "TMPDIR": str(self.folder)})  # fmt: skip
        self.await_stored(4)
        self.lay_out()
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


class ProfilePluginTest(TensorBoardTest):
    plugin = "profile"
    modules = "xprof, jax"

    def test_it_finds_the_sessions_the_hosts_and_the_steps_that_jax_recorded(self):
        for rank in range(2):
            self.run_trial(_XLA_TRAINING, interpreter=os.environ[_VARIABLE],
                           variables={"PYTHONPATH": frameworks.package_path(), "RANK": str(rank), "WORLD_SIZE": "2",
                                      "STEPWELL_ATTEMPT_KEY": "one", "FOLDER": str(self.folder), "JAX_PLATFORMS": "cpu"})  # fmt: skip
        self.await_stored(4)
        self.lay_out()
        run = self.trial.replace(".", "_")
        address = self.serve()
        found: list[object] = []

        def are_listed() -> bool:
            found[:] = [self.ask(address, "runs")]
            return sorted(found[0]) == [f"{run}/ba0___2", f"{run}/ba10___12"]

        self.assertTrue(self.eventually(are_listed), found)
        for session, first in ("ba0___2", 0), ("ba10___12", 10):
            for viewed in self.viewed(address, f"{run}/{session}"):
                names = [event["name"] for event in viewed["traceEvents"] if event["name"].startswith("train ")]
                self.assertEqual([f"train {step}" for step in range(first, first + 3)], sorted(names))
            overview = self.ask(address, "data", run=f"{run}/{session}", tag="overview_page", host="ALL_HOSTS")
            self.assertTrue(any("host_idle_time_percent" in table.get("p", {}) for table in overview), overview)

    def viewed(self, address: str, run: str) -> list[dict]:
        """What its trace viewer has of each of the two hosts of a session, which has its overview, too."""
        self.assertLessEqual({"overview_page", "trace_viewer@"}, set(self.ask(address, "run_tools", run=run)))
        listed = self.ask(address, "hosts", run=run, tag="trace_viewer@")
        hosts = [each["hostname"] for each in listed if each["hostname"] != "ALL_HOSTS"]
        self.assertEqual(["rank0", "rank1"], sorted(re.findall(r"rank\d", " ".join(hosts))), hosts)
        return [self.ask(address, "data", run=run, tag="trace_viewer@", host=host) for host in hosts]

    @unittest.skipUnless(_TENSORFLOW, "STEPWELL_TENSORFLOW_PYTHON names no interpreter; tests/run.sh --long --only readers makes one")
    def test_it_finds_what_tensorflow_recorded(self):
        for rank in range(2):
            self.run_trial(_TENSORFLOW_TRAINING, interpreter=_TENSORFLOW,
                           variables={"PYTHONPATH": frameworks.package_path(), "RANK": str(rank), "WORLD_SIZE": "2",
                                      "STEPWELL_ATTEMPT_KEY": "one", "FOLDER": str(self.folder)})  # fmt: skip
        self.await_stored(4)
        self.lay_out()
        run = self.trial.replace(".", "_")
        address = self.serve()
        self.assertTrue(self.eventually(lambda: sorted(self.ask(address, "runs")) == [f"{run}/ba0___2", f"{run}/ba10___12"]))
        for session, first in ("ba0___2", 0), ("ba10___12", 10):
            for viewed in self.viewed(address, f"{run}/{session}"):
                names = {event["name"] for event in viewed["traceEvents"] if event["name"].startswith("train")}
                self.assertEqual({f"train {step}" for step in range(first, first + 3)}, names)
                self.assertTrue(any("MatMul" in event["name"] for event in viewed["traceEvents"]), viewed)


if __name__ == "__main__":
    unittest.main()
