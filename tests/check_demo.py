"""A master, an agent and two short trainings of the demo: what the report makes of them.

check_demo.py BIN, the folder of the built programs. The demo's loss on text it was not trained on falls
below a bigram baseline; a loader made slow has the largest share of the report, and not otherwise.
Prints what is not so; exits 0 if all is. Takes about 15 seconds.
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager

LOADER = "dataloader_next"
READY_WAIT_S = 60.0
STOP_WAIT_S = 40.0
COMMAND_WAIT_S = 120.0
# Learning takes some hundred steps; a slow loader shows in a few.
TRAININGS = {"usual": ["--steps", "1200"], "slow": ["--steps", "80", "--slow-loader", "20"]}


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


def output_of(*words: str, environment: dict[str, str] | None = None) -> dict:
    """The JSON that a program prints."""
    done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, env=environment,
                          timeout=COMMAND_WAIT_S, check=True)
    return json.loads(done.stdout)


def await_ready(ready_file: pathlib.Path, master: subprocess.Popen[bytes], log: pathlib.Path) -> dict:
    deadline = time.monotonic() + READY_WAIT_S
    while not ready_file.exists() or not ready_file.read_text():
        if master.poll() is not None or time.monotonic() > deadline:
            raise SystemExit(f"the master was not ready:\n{log.read_text(errors='replace')}")
        time.sleep(0.05)
    return json.loads(ready_file.read_text())


def complaints(result: dict, report: dict, is_slow: bool) -> list[str]:
    """What is not as it should be, of one training and its report."""
    found = []
    if not result["stored"]:
        found.append(f"not all of it was stored: {result['recording_message']}")
    if not is_slow and not result["held_out_loss"] < result["bigram_loss"]:
        found.append(f"held-out loss {result['held_out_loss']}, not below the bigram's {result['bigram_loss']}")
    shares = {timing["name"]: timing["share"] for timing in report["timings"] if timing["in_step"]}
    largest = max(shares, key=lambda name: shares[name], default="nothing")
    if (largest == LOADER) != is_slow or not shares:
        found.append(f"{largest} has the largest share, of {shares}")
    if is_slow and shares.get(LOADER, 0) < 0.5:
        found.append(f"a loader of 20 ms has a share of only {shares.get(LOADER)}")
    return found


def train_and_report(binaries: pathlib.Path, folder: pathlib.Path) -> list[str]:
    found = []
    data, spool, ready_file = folder / "data", folder / "spool", folder / "ready.json"
    spool.mkdir(mode=0o700)
    stepwell, demo = str(binaries / "stepwell"), str(binaries / "stepwell-demo")
    with running(folder / "master.log", stepwell, "serve", "--data-dir", str(data), "--ready-file", str(ready_file),
                 "--grpc-listen", "127.0.0.1:0", "--http-listen", "127.0.0.1:0") as master:
        server = await_ready(ready_file, master, folder / "master.log")["grpc"]
        with running(folder / "agent.log", stepwell, "agent", "--server", server, "--spool-dir", str(spool)):
            for name, arguments in TRAININGS.items():
                result = output_of(demo, "--trial", name, "--json", "--exit-wait", "30", *arguments,
                                   environment={"STEPWELL_SPOOL_DIR": str(spool), "STEPWELL_AGENT": "off"})
                report = output_of(stepwell, "report", name, "--server", server, "--json")
                found += [f"{name}: {complaint}" for complaint in complaints(result, report, name == "slow")]
    return found


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="stepwell-demo-") as name:
        folder = pathlib.Path(name)
        folder.chmod(0o755)  # PostgreSQL's own user passes through it.
        found = train_and_report(pathlib.Path(sys.argv[1]), folder)
    for complaint in found:
        print(complaint)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
