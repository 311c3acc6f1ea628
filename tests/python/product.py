"""What the tests share: trials as processes of the installed package, and what a master has stored of them."""

from __future__ import annotations

import json
import os
import pathlib
import signal
import subprocess
import textwrap
import time
import unittest
from collections import Counter
from collections.abc import Callable

WAIT_S = 60.0

# Of a trial, unless a test says otherwise. It waits until all of it is stored, and says so.
_VARIABLES = {
    "STEPWELL_EXIT_WAIT": "60",
    "STEPWELL_AGENT_IDLE_EXIT": "1",  # none is started: that of run.py serves the spool
    "STEPWELL_SYSTEM_ROOT": "/no/such/root",
    "STEPWELL_SYSTEM_METRICS": "0",
    "PYTHONDONTWRITEBYTECODE": "1",
}


def folder() -> pathlib.Path:
    return pathlib.Path(os.environ["PRODUCT_FOLDER"])


def python() -> str:
    return os.environ["PRODUCT_PYTHON"]


def program() -> str:
    return os.environ["PRODUCT_PROGRAM"]


def server() -> str:
    return os.environ["PRODUCT_SERVER"]


def page() -> str:
    return "http://" + os.environ["PRODUCT_HTTP"]


class Sample:
    def __init__(self, line: dict) -> None:
        self.group: str = line["metric_group"]
        self.name: str = line["name"]
        self.labels: dict[str, str] = line["labels"]
        self.batch: int = line["batch"]
        self.value: float = line["value"]
        self.unit: str = line["unit"]
        self.attempt: int = line["attempt"]


class ProductTest(unittest.TestCase):
    """A test's trial is called after it."""

    is_second_look = False  # after it failed, which left samples

    @property
    def trial(self) -> str:
        return (self.id().replace("test_", "") + self.is_second_look * ".again")[-200:]

    def start(self, source: str, *, options: tuple[str, ...] = (), variables: dict[str, str] | None = None,
              as_file: bool = False, interpreter: str | None = None) -> subprocess.Popen[str]:  # fmt: skip
        """A Python of the package's environment that runs this text."""
        inherited = {key: value for key, value in os.environ.items()
                     if not key.startswith(("STEPWELL_", "PYTHON", "SLURM_", "TORCHELASTIC_"))}  # fmt: skip
        # With an agent that could be started a trial waits for one that is slow to come, as on a busy machine.
        environment = {**inherited, **_VARIABLES, "STEPWELL_SERVER": server(), "STEPWELL_TRIAL": self.trial,
                       "STEPWELL_AGENT": program(), "STEPWELL_SPOOL_DIR": os.environ["PRODUCT_SPOOL"],
                       **(variables or {})}  # fmt: skip
        environment = {key: value for key, value in environment.items() if value != "unset"}
        text = textwrap.dedent(source)
        words = ["-c", text]
        if as_file:  # spawned children import it
            path = folder() / f"{self.trial}.py"
            path.write_text(text)
            words = [str(path)]
        return subprocess.Popen([interpreter or python(), *options, *words], env=environment, cwd=folder(), text=True,
                                start_new_session=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE)  # fmt: skip

    def run_trial(self, source: str, *, code: int = 0, options: tuple[str, ...] = (),
                  variables: dict[str, str] | None = None, as_file: bool = False,
                  interpreter: str | None = None, wait_s: float = 2 * WAIT_S) -> tuple[str, str]:  # fmt: skip
        """Runs it to its end: what it printed, and what it said on stderr."""
        process = self.start(source, options=options, variables=variables, as_file=as_file, interpreter=interpreter)
        try:
            out, err = process.communicate(timeout=wait_s)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)  # its children, too: they hold what it prints into
            self.fail(f"it did not end: {process.communicate()}")
        self.assertEqual(code, process.returncode, out + err)
        return out, err

    def samples(self, trial: str | None = None) -> list[Sample]:
        """All that the master has of the trial now, without what its agent says of itself."""
        done = subprocess.run([program(), "export", trial or self.trial, "--server", server(), "--format", "jsonl"],
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True, timeout=WAIT_S)  # fmt: skip
        found = [Sample(json.loads(line)) for line in done.stdout.splitlines()]
        return [sample for sample in found if sample.group != "agent"]

    def counts(self, trial: str | None = None) -> dict[str, int]:
        """How many samples of each name."""
        return dict(Counter(sample.name for sample in self.samples(trial)))

    def await_counts(self, wanted: dict[str, int], trial: str | None = None) -> list[Sample]:
        """Until the master has exactly these."""
        found: list[list[Sample]] = [[]]

        def is_there() -> bool:
            found[0] = self.samples(trial)
            return dict(Counter(sample.name for sample in found[0])) == wanted

        if not self.eventually(is_there):
            self.assertEqual(wanted, dict(Counter(sample.name for sample in found[0])))
        return found[0]

    @staticmethod
    def eventually(is_so: Callable[[], bool]) -> bool:
        deadline = time.monotonic() + WAIT_S
        while not is_so():
            if time.monotonic() > deadline:
                return False
            time.sleep(0.05)
        return True
