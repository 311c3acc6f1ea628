#!/usr/bin/env python3
"""How long does a person wait for the page? A real Chromium looks at a real master that holds a trial of 1065
series (10^8 samples, 9 x 10^6 with --quick), then at a training of 20 ranks that records through an agent meanwhile. The ranks
stand for twenty machines: they begin when the first part is over, for here they run on the same cores as all that is measured.
Without chromium or the page's tools (client/web/node_modules) it says so and prints nothing.
"""

import argparse
import contextlib
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator

_HERE = pathlib.Path(__file__).resolve().parent
_PLAYWRIGHT = _HERE.parents[1] / "client/web/node_modules/playwright-core/index.mjs"
_LIVE = "live"
_STOP_S = 60


@contextlib.contextmanager
def child(*words: str | pathlib.Path, **more: object) -> Iterator[subprocess.Popen[str]]:
    """A program that ends with its standard input, or else is asked to."""
    process = subprocess.Popen([str(word) for word in words], stdin=subprocess.PIPE, text=True, **more)  # type: ignore[call-overload]
    try:
        yield process
    finally:
        process.stdin.close()
        if more.get("stdout") is None:
            process.terminate()
        try:
            process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()


def line_of(process: subprocess.Popen[str], what: str) -> str:
    """The first line that it prints."""
    assert process.stdout
    line = process.stdout.readline()
    if not line:
        raise RuntimeError(f"{what} ended with {process.wait(_STOP_S)}")
    return line


def restarted(load: subprocess.Popen[str]) -> dict[str, str]:
    """Where the next master is, which has read nothing yet."""
    assert load.stdin
    load.stdin.write("\n")
    load.stdin.flush()
    return json.loads(line_of(load, "web_load"))


def cold_looks(load: subprocess.Popen[str], master: dict[str, str], asked: dict[str, object], count: int) -> int:
    """The first look at each of so many masters. Exit code of what looks."""
    taken = []
    for _ in range(count):
        master = restarted(load)
        look = asked | {"url": f"http://{master['http']}/", "trial": master["trial"], "once": True}
        looked = subprocess.run(["node", _HERE / "measure.mjs", json.dumps(look)], check=False, stdout=subprocess.PIPE, text=True)
        if looked.returncode:
            return looked.returncode
        taken.append(float(looked.stdout))
    print(json.dumps({
        "name": "web.charts_15_first", "value": statistics.median(taken), "unit": "ms", "bar": "<= 500", "promised": False, "n": count, "spread": [min(taken), max(taken)],
        "against": "nothing: the same of the first look at a master that was just started and has read nothing yet",
    }), flush=True)
    return 0


def measure(room: pathlib.Path, binaries: pathlib.Path, chromium: str, arguments: argparse.Namespace) -> int:
    """Exit code of what looks."""
    with contextlib.ExitStack() as stack:
        load = stack.enter_context(child(binaries / "web_load", "20" if arguments.quick else "222", stdout=subprocess.PIPE))
        master = json.loads(line_of(load, "web_load"))
        asked = {"playwright": str(_PLAYWRIGHT), "chromium": chromium, "url": f"http://{master['http']}/", "quick": arguments.quick}
        if cold := cold_looks(load, master, asked, 3 if arguments.quick else 5):
            return cold
        master = restarted(load)
        asked["url"] = f"http://{master['http']}/"
        looked = subprocess.run(["node", _HERE / "measure.mjs", json.dumps(asked | {"trial": master["trial"]})], check=False).returncode
        if looked:
            return looked
        spool = room / "spool"
        spool.mkdir(0o700)
        log = stack.enter_context((room / "agent.log").open("w"))
        stack.enter_context(child(binaries / "stepwell", "agent", "--server", master["grpc"], "--spool-dir", spool, stderr=log))
        environment = {key: value for key, value in os.environ.items() if not key.startswith("STEPWELL_")}
        environment |= {"STEPWELL_SERVER": master["grpc"], "STEPWELL_SPOOL_DIR": str(spool), "STEPWELL_AGENT": "off"}
        training = stack.enter_context(child(binaries / "live_training", _LIVE, stdout=subprocess.PIPE, env=environment))
        asked |= {"live": _LIVE, "startMs": int(line_of(training, "live_training")), "followMinutes": arguments.follow_minutes}
        time.sleep(5)  # the training's first samples are stored: the page shows a trial that lives
        return subprocess.run(["node", _HERE / "measure.mjs", json.dumps(asked)], check=False).returncode


def main() -> int:
    """Exit 0 unless it could not measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--follow-minutes", type=float, default=0, metavar="N", help="follow for so long and tell what the page's memory does")
    arguments = parser.parse_args()
    chromium = shutil.which("chromium")
    if not chromium or not shutil.which("node") or not _PLAYWRIGHT.exists():
        print("web: not measured: chromium, node and client/web/node_modules are needed", file=sys.stderr)
        return 0
    binaries = pathlib.Path(os.environ.get("STEPWELL_BIN", "build/release/bin")).absolute()
    with tempfile.TemporaryDirectory(prefix="stepwell-web-bench-") as directory:
        return measure(pathlib.Path(directory), binaries, chromium, arguments)


if __name__ == "__main__":
    sys.exit(main())
