"""Trials under frameworks: the interpreter that has one, beside the package that is tested."""

from __future__ import annotations

import functools
import os
import pathlib
import subprocess
import sys
import tempfile

import product
from product import ProductTest

# Where nothing else is said, what this runs on: Debian's packages.
_VARIABLE = "STEPWELL_FRAMEWORKS_PYTHON"


def python() -> str:
    return os.environ.get(_VARIABLE) or sys.executable


def _torch_path() -> list[str]:
    """Debian's packages, where it is theirs that are used and this interpreter is another that can load them."""
    torch = os.environ.get("PRODUCT_TORCH", "")
    return [torch] if torch and not os.environ.get(_VARIABLE) else []


@functools.cache
def reason_to_skip(module: str) -> str:
    """Empty where that interpreter has the module, and can take the package's extension."""
    code = f"import sys; print(sys.version_info[:2]); import {module}"
    environment = {**os.environ, "KERAS_BACKEND": "torch", "PYTHONPATH": ":".join(_torch_path())}
    done = subprocess.run([python(), "-c", code], env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True)  # fmt: skip
    if done.returncode != 0:
        return f"{module} is not installed; tests/run.sh --long --only frameworks fetches it"
    if done.stdout.splitlines()[0] != str(sys.version_info[:2]):
        return f"{module} is another Python's"
    return ""


@functools.cache
def package_path() -> str:
    """A folder with the installed package in it, and no other."""
    (source,) = pathlib.Path(product.python()).parents[1].glob("lib/python*/site-packages/stepwell")
    folder = pathlib.Path(tempfile.mkdtemp(dir=product.folder()))
    (folder / "stepwell").symlink_to(source)
    return str(folder)


class FrameworkTest(ProductTest):
    module = ""

    def setUp(self) -> None:
        why = reason_to_skip(self.module)
        if why:
            self.skipTest(why)

    def train(self, source: str, *, trial: str | None = None, wait_s: float = 2 * product.WAIT_S,
              **variables: str) -> tuple[str, str]:  # fmt: skip
        """Runs it under the interpreter of the frameworks. A warning of ours fails it."""
        more = {"PYTHONPATH": package_path(), "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "", "HF_HUB_OFFLINE": "1",
                **({"STEPWELL_TRIAL": trial} if trial else {}), **variables}  # fmt: skip
        more["PYTHONPATH"] = ":".join([more["PYTHONPATH"], *_torch_path()])
        out, err = self.run_trial(source, variables=more, interpreter=python(), wait_s=wait_s)
        self.assertNotIn("is not recorded:", err)
        return out, err

    def batches_of(self, name: str, labels: dict[str, str] | None = None, trial: str | None = None) -> list[int]:
        """Sorted, of the samples of that name, -1 those in no step."""
        wanted = labels or {}
        return sorted(sample.batch for sample in self.samples(trial)
                      if sample.name == name and wanted.items() <= sample.labels.items())  # fmt: skip

    def assert_steps(self, steps: list[int], names: tuple[str, ...]) -> None:
        """Each of the names has a sample of each of the steps; what is in no step is left out."""
        found: dict[str, list[int]] = {name: [] for name in names}
        for sample in self.samples():
            if sample.name in found and sample.batch >= 0 and sample.labels.get("loader", "train") == "train":
                found[sample.name].append(sample.batch)
        self.assertEqual({name: steps for name in names}, {name: sorted(batches) for name, batches in found.items()})

    def assert_epochs(self, first: dict[int, float], trial: str | None = None) -> None:
        """The batch that an epoch begins with -> the epoch; told by others once more it is the same."""
        told = {(sample.batch, sample.value) for sample in self.samples(trial) if sample.name == "epoch"}
        self.assertEqual(sorted(first.items()), sorted(told))

    def assert_samples_per_second(self, samples: dict[int, int], trial: str | None = None) -> None:
        """By batch, how many samples it had: within 20 % of what the step's own time says, in half of the steps at least, for a
        machine may do something else between the two clocks."""
        found = self.samples(trial)
        steps = {sample.batch: sample.value for sample in found if sample.name == "step"}
        speeds = {sample.batch: sample.value for sample in found if sample.name == "samples_per_second"}
        self.assertEqual(sorted(samples), sorted(speeds))
        ratios = {batch: speeds[batch] * steps[batch] / samples[batch] for batch in samples}
        median = sorted(ratios.values())[len(ratios) // 2]
        self.assertTrue(0.8 <= median <= 1.2, ratios)
