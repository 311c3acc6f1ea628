"""tests/soak.sh over made-up rounds: what it adds up, what its row says, of which commit."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

TESTS = pathlib.Path(__file__).parents[2]

# Two rounds, then the run is cut off.
ROUNDS = """#!/bin/sh
count=$(cat rounds-so-far 2>/dev/null || echo 0)
[ "$count" = 2 ] && { kill "$PPID"; exec sleep 60; }
echo $((count + 1)) >rounds-so-far
echo "soak kind: $((count + 2)) agent killed"
echo "soak kind: 0 master killed in a sweep"
echo "soak kind: 5 a child of postgres killed"
echo "soak impossible: the spool's disk full (no mounts, no disk | none)"
echo "soak impossible: the clock set (not loaded)"
echo "soak: samples 1000 declared 1 faults 7 tried 9 ok 1"
"""

PAGE = """| date | commit | seeds | minutes | samples | of them declared | faults | result |
|---|---|---|---|---|---|---|---|
"""


class SoakTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.root = pathlib.Path(self.folder.name)
        for name, text in [("docs/reliability.md", PAGE), ("server/server.cc", "int server;"),
                           ("tests/faults/soak_test.cc", "int test;"), ("client/web/src/page.ts", "let page;")]:
            (self.root / name).parent.mkdir(parents=True)
            (self.root / name).write_text(text)
            os.utime(self.root / name, (1000, 1000))
        shutil.copy(TESTS / "soak.sh", self.root / "tests")
        (self.root / "deploy").mkdir()
        shutil.copy(TESTS.parent / "deploy/progress.sh", self.root / "deploy")
        self.git("init", "-q")
        self.git("add", ".")
        self.git("commit", "-q", "-m", "one")
        self.commit = self.git("rev-parse", "--short", "HEAD").strip()
        for name, text in [("fault_tests", ROUNDS), ("stepwell", "#!/bin/sh")]:
            program = self.root / "build/release/bin" / name
            program.parent.mkdir(parents=True, exist_ok=True)
            program.write_text(text)
            program.chmod(0o755)

    def git(self, *words: str) -> str:
        return subprocess.run(["git", "-C", str(self.root), "-c", "user.name=t", "-c", "user.email=t@t", *words],
                              capture_output=True, text=True, check=True).stdout

    def soak(self, *words: str) -> subprocess.CompletedProcess:
        return subprocess.run([str(self.root / "tests/soak.sh"), *words], capture_output=True, text=True, cwd=self.root)

    def test_kinds_of_faults_are_added_up_through_a_cut_and_stand_in_the_row(self):
        cut = self.soak("--minutes", "1", "--seed", "7")
        self.assertEqual(75, cut.returncode, cut.stderr)
        self.assertEqual([], list((self.root / "build/test-results/soak").glob("*-[78].log")), "of exact rounds")
        done = self.soak("--resume", "--minutes", "0", "--write")
        self.assertEqual(0, done.returncode, done.stderr)
        row = (self.root / "docs/reliability.md").read_text().splitlines()[-1]
        self.assertRegex(row, rf"^\| [\d-]+ \| {self.commit} \| 7 to 8 \| 0 \| 2000 \| 2 \| 14 \| 2 of 2 rounds exact: "
                              r"10 x a child of postgres killed, 5 x agent killed, 0 x master killed in a sweep; "
                              r"not possible here: the spool's disk full \(no mounts, no disk / none\), the clock set \(not loaded\) \|$")

    def test_it_says_what_it_does_before_the_first_round_and_what_each_was_without(self):
        lines = self.soak("--minutes", "1", "--seed", "7").stdout.splitlines()
        self.assertRegex(lines[0], r"^soak: seed 7, rounds of 150 s .* for 1 min; logs in build/test-results/soak$")
        self.assertRegex(lines[1], r"^ +\d+ s  seed 7  exact  samples 1000 \(all 1000\)  declared 1 \(all 1\)  faults 7 of 9 \(all 7\)  \d+ s to go$")
        self.assertRegex(lines[2], r"^ +not possible here: the spool's disk full \(no mounts, no disk / none\), the clock set \(not loaded\)$")
        again = self.soak("--resume", "--minutes", "0").stdout.splitlines()
        self.assertRegex(again[0], r"^soak: seed 9, .*, 2 rounds and \d+ s are done; logs in ")

    def commit_told(self) -> str:
        self.assertEqual(75, self.soak("--minutes", "1", "--seed", "7").returncode)
        rows = (self.root / "build/test-results/soak/rounds").read_text().splitlines()
        return next(row for row in rows if row.startswith("round ")).split()[2]

    def test_the_commit_is_that_of_the_executables(self):
        self.assertEqual(self.commit, self.commit_told())

    def test_one_that_is_older_than_a_source_has_no_commit(self):
        os.utime(self.root / "server/server.cc", (2**31, 2**31))
        self.assertEqual("unknown", self.commit_told())

    def test_one_that_is_older_than_a_page_has_its_own(self):
        os.utime(self.root / "client/web/src/page.ts", (2**31, 2**31))
        self.assertEqual(self.commit, self.commit_told())

    def test_what_was_changed_since_the_commit_is_told(self):
        (self.root / "server/server.cc").write_text("int other;")
        os.utime(self.root / "server/server.cc", (1001, 1001))
        self.assertEqual(self.commit + "+", self.commit_told())

    def test_a_run_that_goes_on_tells_the_commit_that_it_was_built_of(self):
        self.assertEqual(self.commit, self.commit_told())
        self.git("commit", "-q", "--allow-empty", "-m", "two")
        (self.root / "rounds-so-far").write_text("1")
        self.assertEqual(75, self.soak("--resume").returncode)
        rows = (self.root / "build/test-results/soak/rounds").read_text().splitlines()
        self.assertEqual([self.commit] * 3, [row.split()[2] for row in rows if row.startswith("round ")])


if __name__ == "__main__":
    unittest.main()
