"""Which failed cases are run once more, how, and what is told of them."""

import pathlib
import stat
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[2]))

import second_look  # noqa: E402

# A program of tests that passes where it is asked for one test, with the seed that this one failed with.
PROGRAM = """#!/bin/sh
[ "$1" = --gtest_filter=Store.Folds ] && [ "$STEPWELL_TEST_SEED" = 7 ]
"""


def case(name: str, output: str) -> str:
    return f'<testcase name="{name}" status="fail"><failure message="Failed"/><system-out>{output}</system-out></testcase>'


def tests(seed: int, words: str = "hole") -> str:
    return ("[ RUN      ] Store.Appends\nSTEPWELL_TEST_SEED=3\n[       OK ] Store.Appends (1 ms)\n"
            f"[ RUN      ] Store.Folds\nSTEPWELL_TEST_SEED={seed}\nstore_test.cc:9: Failure\n{words}\n\n"
            "[  FAILED  ] Store.Folds (3 ms)\n")


class SecondLookTest(unittest.TestCase):
    def kinds(self, *cases: str) -> list[str]:
        with tempfile.TemporaryDirectory() as folder:
            build = pathlib.Path(folder)
            (build / "bin").mkdir()
            program = build / "bin" / "store_tests"
            program.write_text(PROGRAM)
            program.chmod(program.stat().st_mode | stat.S_IXUSR)
            junit = build / "j.xml"
            junit.write_text(f"<testsuite>{''.join(cases)}</testsuite>")
            return [row[0] for row in second_look.look(build, str(junit))[1]]

    def test_what_passes_alone_with_its_seed_is_flaky(self):
        self.assertEqual(["flaky"], self.kinds(case("store_tests", tests(7))))

    def test_what_fails_again_has_failed(self):
        self.assertEqual(["failed"], self.kinds(case("store_tests", tests(8))))

    def test_what_a_sanitizer_found_is_not_run_again(self):
        self.assertEqual(["failed"], self.kinds(case("store_tests", tests(7) + "ERROR: AddressSanitizer: leak")))

    def test_where_much_failed_nothing_is_run_again(self):
        many = [case(f"Other.{n}", "") for n in range(second_look.FAILED_MAX)]
        self.assertEqual(["failed"] * (second_look.FAILED_MAX + 1), self.kinds(case("store_tests", tests(7)), *many))

    def test_a_case_that_ctest_does_not_know_has_failed(self):
        self.assertEqual(["failed"], self.kinds(case("Gone.Away", "")))


if __name__ == "__main__":
    unittest.main()
