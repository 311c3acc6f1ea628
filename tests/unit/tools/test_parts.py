"""tests/parts.sh: what it lists by name is what there is."""

import pathlib
import re
import unittest

TESTS = pathlib.Path(__file__).parents[2]


class PartsTest(unittest.TestCase):
    def test_every_fuzzer_is_run_by_its_noun(self):
        part = re.search(r"^part_fuzz\(\) \{\n(.*?)^\}", (TESTS / "parts.sh").read_text(), re.DOTALL | re.MULTILINE)
        self.assertIsNotNone(part)
        loop = re.search(r"\bfor noun in ([\w ]+); do", part.group(1))
        self.assertIsNotNone(loop)
        nouns = loop.group(1).split()
        written = [path.name.removesuffix("_fuzz.cc") for path in (TESTS / "fuzz").glob("*_fuzz.cc")]
        self.assertEqual(sorted(written), sorted(nouns))
        # Each starts from the corpus of its noun.
        for noun in nouns:
            self.assertTrue((TESTS / "fuzz" / noun).is_dir(), noun)


if __name__ == "__main__":
    unittest.main()
