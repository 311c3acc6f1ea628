"""The examples of docs/python.md and of both READMEs run as they stand there."""

import ast
import os
import pathlib
import re
import statistics
import tempfile
import unittest

import frameworks
import product
from product import ProductTest
from test_hooks import by_run

_ROOT = pathlib.Path(__file__).resolve().parents[2]
_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# What the examples take as given.
_GIVEN = """
import time
loader = [1.0, 0.5, 0.25]
def train(batch): return batch
"""


class DocsTest(ProductTest):
    def test_examples_run_and_record(self):
        for page in ("README.md", "docs/python.md", "client/python/README.md"):
            blocks = _BLOCK.findall((_ROOT / page).read_text(encoding="utf-8"))
            self.assertTrue(blocks, page)
            for number, block in enumerate(blocks):
                with self.subTest(page=page, block=number):
                    trial = f"{self.trial}.{page.rpartition('/')[0].replace('/', '.')}.{number}"
                    # An example names its trial; the tests have names of their own.
                    source = re.sub(r'trial="[^"]*"', f'trial="{trial}"', block)
                    _, err = self.run_trial(_GIVEN + source, variables={"STEPWELL_TRIAL": trial})
                    self.assertNotIn("Warning", err)
                    is_stored = self.eventually(lambda trial=trial: bool(self.counts(trial)))
                    self.assertTrue(is_stored, "it recorded nothing")


class TutorialTest(ProductTest):
    """The scripts of docs/tutorial-loader.md, of 96 images for 3200, or 640 where there are two ranks."""

    def test_they_say_what_the_page_says(self):
        torch = os.environ.get("PRODUCT_TORCH", "")
        if not torch:
            self.skipTest("this interpreter has no torch")
        page = (_ROOT / "docs" / "tutorial-loader.md").read_text("utf-8")
        told, plain = (block.replace("return 3200", "return 96") for block in _BLOCK.findall(page))
        told = told.replace('trial=f"images-{workers}-workers", ', "")
        scratch = tempfile.TemporaryDirectory(dir=product.folder())
        self.addCleanup(scratch.cleanup)
        folder = pathlib.Path(scratch.name)
        variables = {"PYTHONPATH": torch, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "", "GLOO_SOCKET_IFNAME": "lo"}
        (folder / "train.py").write_text(told)
        (folder / "plain.py").write_text(plain)
        source = f"import runpy, sys; sys.argv[1:] = ['0']; runpy.run_path({str(folder / 'train.py')!r}, run_name='__main__')"
        _, said = self.run_trial(source, variables=variables)
        self.assert_three_steps(said, self.trial)
        said = by_run(folder, "--trial", f"{self.trial}.plain", product.python(), "plain.py", "2", variables=variables)
        self.assert_three_steps(said, f"{self.trial}.plain")
        (folder / "plain.py").write_text(plain.replace("return 96", "return 640"))
        fetches = [self.fetches_of_ranks(folder, workers, variables) for workers in (0, 4)]
        for rank in ("0", "1"):
            without, with_workers = (found[rank] for found in fetches)
            # Of four workers three batches in four are there already; a slow start is no matter.
            self.assertLess(statistics.median(with_workers), statistics.median(without), f"rank {rank}: {fetches}")

    def fetches_of_ranks(self, folder: pathlib.Path, workers: int, variables: dict[str, str]) -> dict[str, list[float]]:
        """Of a training on two ranks, which has ten steps: how long each fetch took, by rank."""
        trial = f"{self.trial}.ranks.{workers}"
        launcher = pathlib.Path(frameworks.python()).with_name("torchrun")
        if "STEPWELL_FRAMEWORKS_PYTHON" in os.environ and launcher.exists():
            words = [str(launcher)]
            variables = {**variables, "PYTHONPATH": frameworks.package_path()}
        else:
            # Debian's launcher, of torch 1.13 on Python 3.11, takes no redirection but of stdout alone.
            words = [product.python(), "-m", "torch.distributed.run", "--redirects=1", "--tee=1", f"--log_dir={folder}"]
        said = by_run(folder, "--trial", trial, *words, "--standalone", "--nproc_per_node=2", "plain.py", str(workers),
                      variables=variables)  # fmt: skip
        self.assertEqual(1, said.count("stepwell: 10 steps of "), said)
        found: dict[str, dict[int, float]] = {"0": {}, "1": {}}
        for sample in self.samples(trial):
            if sample.name == "dataloader_next" and sample.batch >= 0:
                found[sample.labels["rank"]][sample.batch] = sample.value
        self.assertEqual([list(range(10))] * 2, [sorted(of_rank) for of_rank in found.values()], said)
        return {rank: list(of_rank.values()) for rank, of_rank in found.items()}

    def assert_three_steps(self, said: str, trial: str) -> None:
        self.assertIn("stepwell: 3 steps of ", said)
        fetches = [s for s in self.samples(trial) if s.name == "dataloader_next" and s.batch >= 0]
        self.assertEqual([0, 1, 2], sorted(sample.batch for sample in fetches))
        for name in ("forward", "backward", "optimizer_step"):
            self.assertEqual(3, self.counts(trial).get(f"train_batch/{name}"), name)


class PagesTest(unittest.TestCase):
    def test_examples_are_python(self):
        docs = _ROOT / "docs"
        pages = [*docs.glob("frameworks/*.md"), docs / "tutorial-loader.md", docs / "python.md",
                 *docs.glob("profilers/*.md"), _ROOT / "client" / "python" / "README.md"]  # fmt: skip
        for page in pages:
            blocks = _BLOCK.findall(page.read_text("utf-8"))
            self.assertTrue(blocks or page.stem == "nsight", page)  # which shows commands alone
            for block in blocks:
                with self.subTest(page.name):
                    ast.parse(block)

    def test_each_module_has_a_page_that_names_it(self):
        for path in sorted((_ROOT / "client/python/stepwell/integrations").glob("[a-z]*.py")):
            with self.subTest(path.stem):
                page = _ROOT / "docs" / "frameworks" / f"{path.stem}.md"
                self.assertTrue(page.is_file(), page)
                imports = re.compile(rf"stepwell\.integrations\.{path.stem} import ([\w, ]+)")
                found = imports.findall(page.read_text("utf-8"))
                self.assertTrue(found, f"{page} names no import of it")
                for names in found:
                    for word in names.split(", "):
                        self.assertIn(word, path.read_text("utf-8"))


if __name__ == "__main__":
    unittest.main()
