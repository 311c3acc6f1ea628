#!/usr/bin/env python3
"""What does sampling a machine of 8 GPUs cost, what serving 64 ranks, and how soon is a trial's first sample?

An agent samples 8 GPUs of a stand-in for NVIDIA's library and all of this machine, for a real master on
a real PostgreSQL, at 1 and 10 Hz; in turns with that, the same for a rank that lives and has metrics of
its own, up to 100 Hz. Its processor time comes from the kernel's own
account of it, its memory from its resident size. What the stand-in costs is in it; a real driver's
share is not. Then an agent drains the rings of 64 processes that record 100,000 events a second
together; nothing may be dropped. Last, processes open their recorders one after the other: how long
after the call is the first sample of free memory, with an agent there and with one that the recorder
has to start?
"""

import argparse
import contextlib
import json
import os
import pathlib
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator

_GPU_COUNT = 8
_INTERVALS = {"1": "1s", "10": "100ms", "100": "10ms"}
# Samples a second; whether a rank lives, whose rings are looked into ten times a second, and which has
# metrics of its own: that has more room.
_CASES = {("1", False): "<= 0.3", ("10", False): "<= 2",
          ("1", True): "<= 0.5", ("10", True): "<= 2.5", ("100", True): "<= 20"}  # fmt: skip
_SCENARIO = f"""gpus {_GPU_COUNT}
gpu * util_gpu 10,90,40,70,20
gpu * memory_used 1e9+1e6/s
gpu * power_mw 300000+1000/s
gpu * energy_mj 1e6+3e5/s
gpu * nvlink_tx_kib 1000+1000000/s
gpu * nvlink_rx_kib 1000+1000000/s
gpu * gpm_2 50
gpu * gpm_5 30
gpu * gpm_20 100
gpu * gpm_21 200
"""


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def wait_for(path: pathlib.Path, process: subprocess.Popen[bytes]) -> None:
    """Until the file is there."""
    deadline = time.monotonic() + 60
    while not path.exists():
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"{path.name} did not come")
        time.sleep(0.05)


def cpu_seconds(pid: int) -> float:
    """User and system time of all its threads, of those that ended, too: the clock of a process, which the
    kernel names by the complement of its number (clock_getcpuclockid), in nanoseconds."""
    return time.clock_gettime((~pid << 3) | 2)


def status_kib(pid: int, key: str) -> int:
    """A line of the process's status."""
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(key + ":"):
            return int(line.split()[1])
    raise RuntimeError(f"no {key}")


class Agent:
    """An agent that samples this machine."""

    def __init__(self, room: pathlib.Path, stepwell: pathlib.Path, server: str, spool: pathlib.Path,
                 flags: list[str], stub: pathlib.Path):  # fmt: skip
        environment = {key: value for key, value in os.environ.items() if not key.startswith("STEPWELL_")}
        environment |= {"STEPWELL_NVML_PATH": str(stub), "STEPWELL_NVML_SCENARIO": str(room / "scenario")}
        with (room / "agent.log").open("ab") as log:
            self._process = subprocess.Popen(
                [stepwell, "agent", "--server", server, "--spool-dir", str(spool), *flags],
                env=environment, stdout=log, stderr=log)  # fmt: skip
        self.pid = self._process.pid

    def share(self, seconds: float) -> float:
        """Percent of one processor over so long."""
        before, started = cpu_seconds(self.pid), time.monotonic()
        time.sleep(seconds)
        return 100 * (cpu_seconds(self.pid) - before) / (time.monotonic() - started)

    def stop(self) -> None:
        """As an operator would."""
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(30)


def result(name: str, values: list[float], unit: str, against: str, bar: str,
           of: Callable[[list[float]], float] = statistics.median) -> None:  # fmt: skip
    """One line of what bench/README.md says."""
    print(json.dumps({"name": f"agent.{name}", "value": round(of(values), 4), "unit": unit,
                      "against": against, "bar": bar, "n": len(values),
                      "spread": [round(min(values), 4), round(max(values), 4)]}), flush=True)  # fmt: skip


def drain(room: pathlib.Path, binaries: pathlib.Path, stub: pathlib.Path, server: str, number: int, seconds: int) -> float:
    """Percent of one processor that the agent of 64 recording ranks takes."""
    spool = room / f"spool-ranks-{number}"
    spool.mkdir(0o700)
    agent = Agent(room, binaries / "stepwell", server, spool, ["--no-auto-sampling"], stub)
    try:
        ranks = subprocess.Popen(
            [binaries / "recording_ranks", str(spool), f"ranks-{number}", "64", "100000", str(seconds + 4)],
            stdout=subprocess.PIPE, text=True, env=os.environ | {"STEPWELL_AGENT": "off"})  # fmt: skip
        # Opening 64 writers is no part of what lasts.
        time.sleep(2)
        share = agent.share(seconds)
        said, _ = ranks.communicate(timeout=60)
        if ranks.returncode != 0 or " dropped 0\n" not in said:
            raise RuntimeError(f"the ranks could not record all: {said}")
        print(f"64 ranks: {said.strip()}, agent {share:.2f} %", file=sys.stderr)
        return share
    finally:
        agent.stop()


@contextlib.contextmanager
def live_rank(binaries: pathlib.Path, server: str, spool: pathlib.Path, trial: str, interval: str) -> Iterator[None]:
    """A process whose recorder is open: for it the agent samples the machine, and it itself."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("STEPWELL_")}
    environment |= {"STEPWELL_SERVER": server, "STEPWELL_SPOOL_DIR": str(spool), "STEPWELL_AGENT": "off",
                    "STEPWELL_INTERVAL": interval}  # fmt: skip
    with subprocess.Popen([binaries / "opening_rank", trial], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          env=environment, text=True) as rank:  # fmt: skip
        assert rank.stdin and rank.stdout
        if not rank.stdout.readline():
            raise RuntimeError(f"{trial} could not record")
        try:
            yield
        finally:
            rank.stdin.close()
            rank.wait(30)


def first_sample_ms(binaries: pathlib.Path, server: str, spool: pathlib.Path, trial: str,
                    more: dict[str, str]) -> float:  # fmt: skip
    """From the call of stepwell_open to the time of the trial's first sample of free memory."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("STEPWELL_")}
    environment |= {"STEPWELL_SERVER": server, "STEPWELL_SPOOL_DIR": str(spool)} | more
    with subprocess.Popen([binaries / "opening_rank", trial], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          env=environment, text=True) as rank:  # fmt: skip
        assert rank.stdin and rank.stdout
        asked_us = int(rank.stdout.readline())
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            time.sleep(0.2)
            read = subprocess.run([binaries / "stepwell", "read", trial, "--server", server, "--name", "memory_free",
                                   "--limit", "1", "--json"], capture_output=True, text=True, check=False)  # fmt: skip
            if read.returncode == 0:
                rank.stdin.close()
                rank.wait(30)
                return (int(json.loads(read.stdout.splitlines()[0])["time_us"]) - asked_us) / 1000
    raise RuntimeError(f"{trial} has no sample of free memory: {read.stderr}")


def first_samples(room: pathlib.Path, binaries: pathlib.Path, stub: pathlib.Path, server: str, count: int) -> None:
    """The longest of so many: each trial is promised its first sample."""
    spool = room / "spool-first"
    spool.mkdir(0o700)
    agent = Agent(room, binaries / "stepwell", server, spool, [], stub)
    try:
        time.sleep(1)
        waits = [first_sample_ms(binaries, server, spool, f"first-{number}", {"STEPWELL_AGENT": "off"})
                 for number in range(count)]  # fmt: skip
    finally:
        agent.stop()
    print("first sample, agent there: " + ", ".join(f"{wait:.1f}" for wait in sorted(waits)), file=sys.stderr)
    result("first_sample", waits, "ms", "stepwell_open to the first memory_free, the longest; agent there", "<= 100", max)
    waits = []
    for number in range(max(count // 2, 3)):
        spool = room / f"spool-started-{number}"
        spool.mkdir(0o700)
        own = {"STEPWELL_AGENT": str(binaries / "stepwell"), "STEPWELL_AGENT_IDLE_EXIT": "1"}
        waits.append(first_sample_ms(binaries, server, spool, f"started-{number}", own))
    print("first sample, agent to be started: " + ", ".join(f"{wait:.1f}" for wait in sorted(waits)), file=sys.stderr)
    result("first_sample_started", waits, "ms", "the same, the agent is started by the recorder", "<= 100", max)


def measure(room: pathlib.Path, binaries: pathlib.Path, quick: bool) -> None:
    """Runs of all rates in turns."""
    stub = binaries.parent / "nvml_stub/new/libnvidia-ml.so.1"
    stepwell = binaries / "stepwell"
    grpc = f"127.0.0.1:{free_port()}"
    (room / "scenario").write_text(_SCENARIO)
    with (room / "master.log").open("ab") as log:
        master = subprocess.Popen(
            [stepwell, "serve", "--data-dir", str(room / "data"), "--grpc-listen", grpc, "--http-listen",
             f"127.0.0.1:{free_port()}", "--ready-file", str(room / "ready")], stdout=log, stderr=log)  # fmt: skip
    try:
        wait_for(room / "ready", master)
        shares: dict[tuple[str, bool], list[float]] = {case: [] for case in _CASES}
        resident: list[float] = []
        for _ in range(3):
            for (rate, has_rank), of_case in shares.items():
                trial = f"bench-{rate}" + ("-rank" if has_rank else "")
                spool = room / f"spool-{trial}"
                spool.mkdir(0o700, exist_ok=True)
                interval = _INTERVALS[rate]
                asked = [] if has_rank else ["--trial", trial, "--interval", interval]
                agent = Agent(room, stepwell, grpc, spool, asked, stub)
                try:
                    with contextlib.ExitStack() as stack:
                        if has_rank:
                            stack.enter_context(live_rank(binaries, grpc, spool, trial, interval))
                        # The start is no part of what lasts: connecting, finding devices, defining series.
                        time.sleep(3)
                        # Devices are looked for each ten seconds.
                        of_case.append(agent.share(10 if quick else 20))
                        resident.append(status_kib(agent.pid, "VmHWM") * 1024 / 1e6)
                finally:
                    agent.stop()
        for (rate, has_rank), of_case in shares.items():
            what = f"one core, {_GPU_COUNT} stub GPUs and the host at {rate} Hz"
            result(f"sample_{rate}hz" + ("_rank" if has_rank else ""), of_case, "percent",
                   what + (", for a rank that lives" if has_rank else ""), _CASES[(rate, has_rank)])  # fmt: skip
        result("resident", resident, "MB", "the agent's largest resident size", "<= 25")
        drained = [drain(room, binaries, stub, grpc, number, 5 if quick else 10) for number in range(3)]
        result("drain_64_ranks", drained, "percent", "one core, 100,000 events a second", "<= 5")
        first_samples(room, binaries, stub, grpc, 10 if quick else 40)
    finally:
        master.send_signal(signal.SIGTERM)
        master.wait(60)


def main() -> int:
    """Exit 0 unless it could not measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    arguments = parser.parse_args()
    binaries = pathlib.Path(os.environ.get("STEPWELL_BIN", "build/release/bin")).absolute()
    with tempfile.TemporaryDirectory(prefix="stepwell-agent-bench-") as directory:
        room = pathlib.Path(directory)
        # The private PostgreSQL's user passes through.
        room.chmod(0o755)
        measure(room, binaries, arguments.quick)
    return 0


if __name__ == "__main__":
    sys.exit(main())
