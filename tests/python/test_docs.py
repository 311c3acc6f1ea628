"""The examples of docs/python.md and of both READMEs run as they stand there."""

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


if __name__ == "__main__":
    unittest.main()
