#!/usr/bin/env python3
"""tests/device/run.sh where both sides are stand-ins: of NVIDIA's library, and of nvidia-smi.

The library's is told by a scenario what to say, nvidia-smi's prints what a table of this test says, in
nvidia-smi's own units. CMake names the probe and the library: GPU_PROBE, NVML_STUB.
"""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

_HERE = pathlib.Path(__file__).parent
_BEGIN = "<!-- device: written by tests/device/run.sh -->\n"
_END = "<!-- device: end -->"

_SCENARIO = """gpus 2
gpu * util_gpu 40
gpu * util_memory 20
gpu * memory_total 85899345920
gpu * memory_used 10737418240
gpu * memory_reserved 0
gpu * power_mw 300000
gpu * power_limit_mw 700000
gpu * temperature 55
gpu * memory_temperature 66
gpu * clock_sm_mhz 1500
gpu * clock_memory_mhz 2600
gpu 0 throttle 4
gpu 1 util_gpu 90
gpu 1 fail field82 3
"""
_SAID = {
    "uuid": ["GPU-stub-0", "GPU-stub-1"],
    "driver_version": ["999.1"] * 2,
    "name": ["Stand-in"] * 2,
    "utilization.gpu": ["40", "90"],
    "utilization.memory": ["20"] * 2,
    "memory.free": ["71680"] * 2,
    "memory.used": ["10240"] * 2,
    "memory.total": ["81920"] * 2,
    "power.draw": ["300.00"] * 2,
    "enforced.power.limit": ["700.00"] * 2,
    "temperature.gpu": ["55"] * 2,
    "temperature.memory": ["66", "N/A"],
    "clocks.sm": ["1500"] * 2,
    "clocks.mem": ["2600"] * 2,
    "clocks_event_reasons.sw_power_cap": ["Active", "Not Active"],
    "clocks_event_reasons.hw_slowdown": ["Not Active"] * 2,
    "clocks_event_reasons.sync_boost": ["Not Active"] * 2,
    "clocks_event_reasons.sw_thermal_slowdown": ["Not Active"] * 2,
    "clocks_event_reasons.hw_thermal_slowdown": ["Not Active"] * 2,
    "clocks_event_reasons.hw_power_brake_slowdown": ["Not Active"] * 2,
}
_SMI = """#!/usr/bin/env python3
import sys
said = {said!r}
if sys.argv[1:] == ["-L"]:
    print("GPU 0: Stand-in (UUID: GPU-stub-0)")
    sys.exit(0)
query, form = sys.argv[1:]
assert form == "--format=csv,noheader,nounits" and query.startswith("--query-gpu="), sys.argv
fields = query.split("=", 1)[1].split(",")
for gpu in range(2):
    print(", ".join(said[field][gpu] for field in fields))
"""


class ScriptTest(unittest.TestCase):
    def setUp(self) -> None:
        self.room = pathlib.Path(tempfile.mkdtemp(prefix="stepwell-device-test-"))
        self.addCleanup(shutil.rmtree, self.room)
        (self.room / "scenario").write_text(_SCENARIO)
        (self.room / "bin").mkdir()
        self.page = self.room / "metrics.md"
        self.page.write_text(f"before\n{_BEGIN}old\n{_END}\nafter\n")

    def run_script(self, said: dict[str, list[str]] | None) -> subprocess.CompletedProcess[str]:
        """With nvidia-smi that says so; none where that is None."""
        smi = self.room / "bin/nvidia-smi"
        if said is not None:
            smi.write_text(_SMI.format(said=said))
            smi.chmod(0o755)
        environment = os.environ | {
            "PATH": f"{self.room / 'bin'}:{os.environ['PATH']}",
            "STEPWELL_NVML_PATH": os.environ["NVML_STUB"],
            "STEPWELL_NVML_SCENARIO": str(self.room / "scenario"),
        }
        return subprocess.run(
            [_HERE / "run.sh", "--seconds", "2", "--probe", os.environ["GPU_PROBE"], "--page", self.page],
            env=environment, capture_output=True, text=True, timeout=60, check=False)  # fmt: skip

    def written(self) -> list[str]:
        """The lines between the marks; what lies around them must not have changed."""
        text = self.page.read_text()
        self.assertTrue(text.startswith("before\n" + _BEGIN), text)
        self.assertTrue(text.endswith(_END + "\nafter\n"), text)
        return text[len("before\n" + _BEGIN):-len(_END + "\nafter\n")].splitlines()  # fmt: skip

    def test_both_agree(self) -> None:
        done = self.run_script(_SAID)
        self.assertEqual(0, done.returncode, done.stdout + done.stderr)
        lines = self.written()
        self.assertIn("Stand-in, driver 999.1", lines[0])
        for line in (
            "| 0 | `gpu_util` | 40 | `utilization.gpu` | 40 | yes |",
            "| 1 | `gpu_util` | 90 | `utilization.gpu` | 90 | yes |",
            "| 0 | `gpu_used_memory` | 1.07374e+10 | `memory.used` | 1.07374e+10 | yes |",
            "| 0 | `gpu_power` | 300 | `power.draw` | 300 | yes |",
            "| 0 | `gpu_sm_clock` | 1.5e+09 | `clocks.sm` | 1.5e+09 | yes |",
            "| 0 | `gpu_memory_temperature` | 66 | `temperature.memory` | 66 | yes |",
            "| 1 | `gpu_memory_temperature` | absent | `temperature.memory` | absent | yes |",
            "| 0 | `gpu_throttle{reason=power_cap}` | 1 | `clocks_event_reasons.sw_power_cap` | 1 | yes |",
            "| 1 | `gpu_throttle{reason=power_cap}` | 0 | `clocks_event_reasons.sw_power_cap` | 0 | yes |",
            "| 0 | `gpu_throttle{reason=power_brake}` | 0 | `clocks_event_reasons.hw_power_brake_slowdown` | 0 | yes |",
        ):
            self.assertIn(line, lines)
        self.assertTrue(any(line.startswith("A tick took ") for line in lines), lines)
        self.assertTrue(any(line.startswith("- absent: ") and "gpu_memory_temperature" in line for line in lines), lines)

    def test_what_differs_is_said(self) -> None:
        for field, values, row in (
            ("power.draw", ["300000", "300000"], "| 0 | `gpu_power` | 300 | `power.draw` | 300000 | **no** |"),
            ("power.draw", ["330.00", "300"], "| 0 | `gpu_power` | 300 | `power.draw` | 330 | **no** |"),
            ("utilization.gpu", ["40", "70"], "| 1 | `gpu_util` | 90 | `utilization.gpu` | 70 | **no** |"),
            ("clocks_event_reasons.sw_power_cap", ["Not Active"] * 2,
             "| 0 | `gpu_throttle{reason=power_cap}` | 1 | `clocks_event_reasons.sw_power_cap` | 0 | **no** |"),
            ("clocks_event_reasons.sync_boost", ["Not Active", "[N/A]"],
             "| 1 | `gpu_throttle{reason=sync_boost}` | there | `clocks_event_reasons.sync_boost` | absent | **no** |"),
            ("memory.total", ["81920", "N/A"], "| 1 | `gpu_total_memory` | there | `memory.total` | absent | **no** |"),
            ("temperature.memory", ["66", "66"], "| 1 | `gpu_memory_temperature` | absent | `temperature.memory` | there | **no** |"),
        ):
            with self.subTest(field):
                done = self.run_script(_SAID | {field: values})
                self.assertEqual(1, done.returncode, done.stdout + done.stderr)
                self.assertIn(row, self.written())

    def test_what_lies_close_agrees(self) -> None:
        done = self.run_script(_SAID | {"power.draw": ["320.00", "285.00"], "utilization.gpu": ["50", "80"]})
        self.assertEqual(0, done.returncode, done.stdout + done.stderr)

    def test_an_older_driver_names_the_reasons_otherwise(self) -> None:
        old = {field.replace("clocks_event_reasons", "clocks_throttle_reasons"): said for field, said in _SAID.items()}
        done = self.run_script(old)
        self.assertEqual(0, done.returncode, done.stdout + done.stderr)
        self.assertIn("| 0 | `gpu_throttle{reason=power_cap}` | 1 | `clocks_event_reasons.sw_power_cap` | 1 | yes |", self.written())

    def test_without_a_gpu_the_page_stays(self) -> None:
        if shutil.which("nvidia-smi"):
            self.skipTest("this machine has an nvidia-smi of its own")
        before = self.page.read_text()
        done = self.run_script(None)
        self.assertEqual(69, done.returncode, done.stdout + done.stderr)
        self.assertIn("no NVIDIA GPU", done.stderr)
        self.assertEqual(before, self.page.read_text())


if __name__ == "__main__":
    unittest.main()
