"""tests/run.sh with made-up parts: what a CI reads from it, the last line and the exit code."""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

TESTS = pathlib.Path(__file__).parents[2]
PARTS = """
parts=(packages one two)
long_parts=(three)
declare -A minutes_of_part=([two]=54)
parts_of_need=(%s)
use_ccache() { :; }
part_packages() { :; }
part_one() { %s; }
part_two() { :; }
part_three() { pass three; }
part_faults() { pass "faults, short $short"; }
"""


class RunTest(unittest.TestCase):
    def run_with(self, part: str, *arguments: str, need: str = "") -> subprocess.CompletedProcess:
        """Runs a copy of tests/run.sh whose part `one` does what `part` says, and `need` must not be left out."""
        with tempfile.TemporaryDirectory() as folder:
            tests = pathlib.Path(folder) / "tests"
            tests.mkdir()
            shutil.copy(TESTS / "run.sh", tests)
            shutil.copy(TESTS / "read_junit.py", tests)
            shutil.copytree(TESTS.parent / "deploy", pathlib.Path(folder) / "deploy")
            (tests / "parts.sh").write_text(PARTS % (need, part))
            own = {name: value for name, value in os.environ.items() if name != "STEPWELL_TEST_MINUTES"}
            return subprocess.run([str(tests / "run.sh"), *arguments], capture_output=True, text=True, env=own)

    def test_last_line_and_exit_code(self):
        junit = ('<testsuite><testcase name="A.B" status="run"/><testcase name="A.C" status="fail">'
                 '<failure message="Timeout"/></testcase></testsuite>')
        for name, part, line, code in [
                ("all pass", "pass a; pass b", "2 passed, 0 failed", 0),
                ("one fails", "pass a; fail b why", "1 passed, 1 failed", 1),
                ("one is skipped", "pass a; skip b 'no device'", "1 passed, 0 failed, 1 skipped", 0),
                ("nothing ran", ":", "0 passed, 0 failed", 1),
                ("all skipped", "skip a why", "0 passed, 0 failed, 1 skipped", 1),
                ("a command fails", "check c false", "0 passed, 1 failed", 1),
                ("ctest left no result", "count_junit nowhere.xml release", "0 passed, 1 failed", 1),
                ("ctest's cases", f"echo '{junit}' >j.xml; count_junit j.xml release", "1 passed, 1 failed", 1)]:
            with self.subTest(name):
                done = self.run_with(part)
                self.assertEqual(line, done.stdout.rstrip("\n").splitlines()[-1], done.stdout + done.stderr)
                self.assertEqual(code, done.returncode)

    def test_a_skip_and_a_failure_name_their_reason(self):
        out = self.run_with("skip gpu 'no device'; fail ring 'full'").stdout
        self.assertIn("skipped gpu: no device", out)
        self.assertIn("FAILED  ring: full", out)

    def test_prints_the_time_of_each_part(self):
        self.assertTrue(re.search(r"^  one +\d+ s$", self.run_with("pass a").stdout, re.MULTILINE))

    def test_a_long_step_shows_that_it_goes_on(self):
        lines = self.run_with("check nap sleep 5; check blink true").stdout.splitlines()
        self.assertIn("..", lines)
        self.assertEqual(["  pass: nap", "  pass: blink"], [line for line in lines if "pass:" in line])

    def test_a_part_without_time_is_skipped_and_one_of_need_fails(self):
        for need, line, word in [("", "1 passed, 0 failed, 1 skipped", "skipped two: out of time"),
                                 ("two", "1 passed, 1 failed", "FAILED  two: out of time")]:
            with self.subTest(need):
                done = self.run_with("pass a; SECONDS=3000", need=need)
                self.assertEqual(line, done.stdout.splitlines()[-1])
                self.assertIn(word, done.stdout)
                self.assertEqual(1 if need else 0, done.returncode)

    def test_only_and_long_choose_parts(self):
        self.assertEqual("1 passed, 0 failed", self.run_with("pass a", "--only", "one").stdout.splitlines()[-1])
        self.assertEqual("2 passed, 0 failed", self.run_with("pass a", "--long").stdout.splitlines()[-1])
        self.assertEqual("1 passed, 0 failed", self.run_with("pass a", "--only", "three").stdout.splitlines()[-1])

    def test_faults_run_alone_long_or_short(self):
        for arguments, word in [(("--faults",), "pass: faults, short no"),
                                (("--faults", "--short"), "pass: faults, short yes")]:
            with self.subTest(arguments):
                out = self.run_with("pass a", *arguments).stdout
                self.assertIn(word, out)
                self.assertEqual("1 passed, 0 failed", out.splitlines()[-1])

    def test_refuses_what_it_does_not_know(self):
        for arguments, word in [(("--only", "four"), "allowed: packages one two three"), (("--fast",), "--fast"),
                                (("--short",), "--faults"), (("--faults", "--only", "one"), "exclude")]:
            with self.subTest(arguments):
                done = self.run_with("pass a", *arguments)
                self.assertEqual(64, done.returncode)
                self.assertIn(word, done.stderr)


if __name__ == "__main__":
    unittest.main()
