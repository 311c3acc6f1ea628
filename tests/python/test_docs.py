"""The examples of docs/python.md and of both READMEs run as they stand there."""

import ast
import pathlib
import re
import unittest

from product import ProductTest

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


class PagesTest(unittest.TestCase):
    def test_examples_are_python(self):
        pages = [*(_ROOT / "docs" / "frameworks").glob("*.md"), _ROOT / "docs" / "tutorial-loader.md"]
        for page in pages:
            blocks = re.findall(r"^```python\n(.*?)^```$", page.read_text("utf-8"), re.MULTILINE | re.DOTALL)
            self.assertTrue(blocks, page)
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
