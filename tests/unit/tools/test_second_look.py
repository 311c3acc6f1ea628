"""Which failed cases are run once more, how, and what is told of them."""

import pathlib
import re
import stat
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[2]))

import second_look  # noqa: E402

TESTS = pathlib.Path(__file__).parents[2]

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

    def test_what_a_checker_found_is_not_run_again(self):
        counts = "   7.21 s  checker: held 5, missing but declared {}, missing {}, doubled {}, changed {}, never recorded {}"
        for name, words, kind in [
                ("a sample is missing", counts.format(0, 1, 0, 0, 0), "failed"),
                ("a sample is doubled", counts.format(0, 0, 12, 0, 0), "failed"),
                ("a sample is changed", counts.format(0, 0, 0, 3, 0), "failed"),
                ("nobody recorded it", counts.format(0, 0, 0, 0, 9), "failed"),
                ("all is exact, and something was late", counts.format(0, 0, 0, 0, 0), "flaky"),
                ("what is missing was declared", counts.format(7, 0, 0, 0, 0), "flaky"),
                ("too much memory", "serve 4711: 512000 KiB resident, bound 409600", "failed"),
                ("too many descriptors", "agent 4711: 900 descriptors, bound 800", "failed"),
                ("too many threads", "agent 4711: 90 threads, bound 60", "failed"),
                ("what was used", "bounds: the most of any serve: 90 MiB, 80 descriptors, 40 threads", "flaky"),
                ("over a limit of memory", 'Expected: (MemoryOf(pid, "VmHWM")) &lt; (512), actual: 600 vs 512', "failed"),
                ("more rows than chunks", "  JournalRows()\n    Which is: 3\n  2", "failed"),
                ("more committed than was", "  Committed(writer)\n    Which is: 3\n  stored", "failed")]:
            with self.subTest(name):
                self.assertEqual([kind], self.kinds(case("store_tests", tests(7, words))))

    def test_what_a_checker_found_in_another_test_of_the_program_counts_there(self):
        before = "[ RUN      ] Store.Opens\nchecker: held 5, missing 1\n[       OK ] Store.Opens (1 ms)\n"
        self.assertEqual(["flaky"], self.kinds(case("store_tests", before + tests(7))))

    def test_the_words_of_checkers_are_those_of_their_sources(self):
        words = {"tests/faults/checker/checker.cc": ["missing %llu, doubled %llu, changed %llu", "never recorded %llu"],
                 "tests/faults/scene.cc": ["checker: "],
                 "tests/faults/worker_ledgers.cc": ["checker: "],
                 "tests/faults/checker/bounds.cc": ['", bound "', '"KiB resident"', '"descriptors"', '"threads"'],
                 "tests/faults/memory_limit_test.cc": ['EXPECT_LT(MemoryOf(pid, "VmHWM")', "count(distinct s.value)"],
                 "tests/contract/pg_store_faults_test.cc": ["EXPECT_EQ(Committed(writer)", "EXPECT_EQ(JournalRows()",
                                                            "max(deadlocks)"]}
        for source, texts in words.items():
            text = (TESTS.parent / source).read_text()
            for word in texts:
                self.assertIn(word, text, source)

    def test_who_draws_a_seed_prints_it_as_it_is_read(self):
        for path in [*TESTS.rglob("*.cc"), *TESTS.rglob("*.h")]:
            text = path.read_text()
            drawn = re.search(r"std::random_device", text) and path.name != "loopback.cc"  # which draws a port
            # A line of its own.
            if drawn or "getenv(\"STEPWELL_TEST_SEED\")" in text:
                line = re.search(r'<< "STEPWELL_TEST_SEED=" << seed << (?:"\\n"|std::endl)', text)
                self.assertTrue(line, path)

    def test_where_much_failed_nothing_is_run_again(self):
        many = [case(f"Other.{n}", "") for n in range(second_look.FAILED_MAX)]
        self.assertEqual(["failed"] * (second_look.FAILED_MAX + 1), self.kinds(case("store_tests", tests(7)), *many))

    def test_a_case_that_ctest_does_not_know_has_failed(self):
        self.assertEqual(["failed"], self.kinds(case("Gone.Away", "")))


if __name__ == "__main__":
    unittest.main()
