"""What a run of the Python package's tests tells of itself: tests/python/rows.py."""

import io
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "python"))

import rows  # noqa: E402

MODULE = '''
import unittest
seen = []
class A(unittest.TestCase):
    def test_good(self): pass
    def test_bad(self): self.assertEqual(1, 2, "in the trial")
    def test_once(self):
        seen.append(1)
        self.assertNotEqual(len(seen), 1)
    def test_part(self):
        for n in range(3):
            with self.subTest(n): self.assertLess(n, 1)
    @unittest.skip("no\\ttorch")
    def test_torch(self): pass
    @unittest.expectedFailure
    def test_mended(self): pass
    def test_gives_up(self):
        seen.append(2)
        if seen.count(2) > 1: self.skipTest("no device")
        self.fail("once")
class B(unittest.TestCase):
    @classmethod
    def setUpClass(cls): raise OSError("no master")
    def test_never(self): pass
'''


def run(*names: str) -> list[tuple[str, ...]]:
    """The rows of the tests `names` of MODULE."""
    space: dict = {"__name__": "module"}
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "tests" / "python" / "module.py"
        path.parent.mkdir(parents=True)
        path.write_text(MODULE)
        exec(compile(MODULE, str(path), "exec"), space)
        suite = unittest.TestSuite(space[name.split(".")[0]](name.split(".")[1]) for name in names)
        return rows.run(suite, unittest.TextTestRunner(stream=io.StringIO()))


class RowsTest(unittest.TestCase):
    def test_kinds(self):
        for tests, wanted in [
                (["A.test_good"], [("passed", "1")]),
                (["A.test_good", "A.test_torch"], [("passed", "1"), ("skipped", "A.test_torch", "no torch")]),
                (["A.test_good", "A.test_bad"], [("passed", "1"), ("failed", "A.test_bad")]),
                (["A.test_mended"], [("passed", "0"), ("failed", "A.test_mended")]),
                (["A.test_gives_up"], [("passed", "0"), ("failed", "A.test_gives_up")]),
                (["B.test_never", "A.test_good"], [("passed", "1"), ("failed", "setUpClass (module.B)")]),
                (["A.test_once"], [("passed", "0"), ("flaky", "A.test_once")]),
                (["A.test_part", "A.test_good"], [("passed", "1"), ("failed", "A.test_part")]),
                (["B.test_never"], [("passed", "0"), ("failed", "setUpClass (module.B)")])]:
            with self.subTest(tests):
                self.assertEqual(wanted, [row if row[0] in ("passed", "skipped") else row[:2] for row in run(*tests)])

    def test_much_that_failed_is_not_looked_at_twice(self):
        kinds = [row[0] for row in run("A.test_once", *["A.test_bad"] * 1, "A.test_part", "B.test_never")]
        self.assertEqual(["passed", "failed", "failed", "failed", "failed"], kinds)

    def test_a_failure_names_its_place_and_words(self):
        why = run("A.test_bad")[1][2]
        self.assertIn("python/module.py:6: AssertionError: 1 != 2 : in the trial", why)


if __name__ == "__main__":
    unittest.main()
