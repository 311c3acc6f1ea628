"""Installs the package into a fresh virtual environment and runs the tests beside a master and an agent.

run.py [--rows FILE] BIN [PATTERN...]: BIN is the folder of the built programs, a pattern is unittest's -k;
FILE gets the rows of tests/read_junit.py. Nothing is fetched: the package's build leans on the standard
library alone.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from collections.abc import Iterator
from contextlib import contextmanager

import rows

HERE = pathlib.Path(__file__).resolve().parent
PACKAGE = HERE.parents[1] / "client" / "python"
READY_WAIT_S = 120.0
STOP_WAIT_S = 40.0


@contextmanager
def running(log: pathlib.Path, *words: str) -> Iterator[subprocess.Popen[bytes]]:
    """A program in the background, asked to end at the end."""
    with log.open("wb") as output:
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT)
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(STOP_WAIT_S)
            except subprocess.TimeoutExpired:
                process.kill()


def await_ready(ready_file: pathlib.Path, master: subprocess.Popen[bytes], log: pathlib.Path) -> dict[str, str]:
    """The master's addresses."""
    deadline = time.monotonic() + READY_WAIT_S
    while not ready_file.exists() or not ready_file.read_text():
        if master.poll() is not None or time.monotonic() > deadline:
            raise SystemExit(f"the master was not ready:\n{log.read_text(errors='replace')}")
        time.sleep(0.05)
    return json.loads(ready_file.read_text())


def install(folder: pathlib.Path, bin_folder: pathlib.Path) -> pathlib.Path:
    """As a person does it, with what the environment says of package indexes left out: its interpreter. With the program
    that the same build has made for it."""
    environment = folder / "venv"
    subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True)
    python = environment / "bin" / "python"
    variables = {key: value for key, value in os.environ.items() if not key.startswith("PIP_")}
    program = bin_folder.parent / "alone" / "stepwell"
    variables["STEPWELL_WHEEL_PROGRAM"] = str(program) if program.is_file() else "off"
    words = [str(python), "-m", "pip", "install", "--no-index", "--disable-pip-version-check", str(PACKAGE)]
    done = subprocess.run(words, env=variables, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)  # fmt: skip
    if done.returncode != 0:
        raise SystemExit(f"pip install failed:\n{done.stdout}")
    return python


def torch_folder(python: pathlib.Path) -> str:
    """Where torch lies, that of the frameworks or Debian's, if this interpreter can load it; "" = nowhere."""
    folder = "/usr/lib/python3/dist-packages"
    if "STEPWELL_FRAMEWORKS_PYTHON" in os.environ:
        words = [os.environ["STEPWELL_FRAMEWORKS_PYTHON"], "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
        folder = subprocess.run(words, stdout=subprocess.PIPE, check=True, text=True).stdout.strip()
    if not os.path.isdir(f"{folder}/torch"):
        return ""
    done = subprocess.run([str(python), "-c", "import torch"], env={**os.environ, "PYTHONPATH": folder},
                          stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip
    return folder if done.returncode == 0 else ""


def run_tests(patterns: list[str]) -> list[tuple[str, ...]]:
    loader = unittest.TestLoader()
    if patterns:
        loader.testNamePatterns = [pattern if "*" in pattern else f"*{pattern}*" for pattern in patterns]
    suite = loader.discover(str(HERE), pattern="test_*.py")
    return rows.run(suite, unittest.TextTestRunner(verbosity=2))


def main() -> int:
    # Whoever runs this in the background of a shell has SIGINT ignored, and so would each trial.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=pathlib.Path)
    parser.add_argument("bin", type=pathlib.Path)
    parser.add_argument("patterns", nargs="*")
    options = parser.parse_args()
    stepwell = str(options.bin.resolve() / "stepwell")
    with tempfile.TemporaryDirectory(prefix="stepwell-python-") as name:
        folder = pathlib.Path(name)
        folder.chmod(0o755)  # PostgreSQL's own user passes through it.
        data, ready_file, spool = folder / "data", folder / "ready.json", folder / "spool"
        spool.mkdir(mode=0o700)
        log = folder / "master.log"
        with running(log, stepwell, "serve", "--data-dir", str(data), "--ready-file", str(ready_file),
                     "--grpc-listen", "127.0.0.1:0", "--http-listen", "127.0.0.1:0") as master:  # fmt: skip
            python = install(folder, options.bin.resolve())
            ready = await_ready(ready_file, master, log)
            server = ready["grpc"]
            with running(folder / "agent.log", stepwell, "agent", "--server", server, "--spool-dir", str(spool)):
                os.environ.update(PRODUCT_PYTHON=str(python), PRODUCT_PROGRAM=stepwell, PRODUCT_SERVER=server,
                                  PRODUCT_SPOOL=str(spool), PRODUCT_FOLDER=str(folder), PRODUCT_HTTP=ready["http"],
                                  PRODUCT_TORCH=torch_folder(python))  # fmt: skip
                # A torch for GPUs tells each process of a machine without any, where tests look for words of ours.
                os.environ.setdefault("KINETO_LOG_LEVEL", "99")
                found = run_tests(options.patterns)
    if options.rows:
        options.rows.write_text("".join("\t".join(row) + "\n" for row in found))
    return 1 if any(row[0] in ("failed", "flaky") for row in found) else 0


if __name__ == "__main__":
    sys.exit(main())
