"""tests/older_programs.sh: which commit is the older one of two builds, in made-up histories, and what it answers to other words."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).parents[2] / "older_programs.sh"


class OlderProgramsTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.root = pathlib.Path(scratch.name, "tree")
        (self.root / "tests").mkdir(parents=True)
        (self.root / "migrations").mkdir()
        shutil.copy(SCRIPT, self.root / "tests")
        # No repository above the scratch directory counts, nor what a person has set.
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "STEPWELL_"))}
        self.environment |= {"GIT_CEILING_DIRECTORIES": scratch.name, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}

    def git(self, *words: str) -> str:
        command = ["git", "-C", str(self.root), "-c", "user.name=a", "-c", "user.email=a@localhost", *words]
        return subprocess.run(command, env=self.environment, check=True, capture_output=True, text=True).stdout.strip()

    def commit(self, *names: str) -> str:
        for name in names:
            (self.root / name).write_text(f"-- {name}\n")
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "one more")
        return self.git("rev-parse", "HEAD")

    def asked(self, **environment: str) -> tuple[int, str]:
        done = subprocess.run([str(self.root / "tests" / SCRIPT.name), "--commit"], env=self.environment | environment,
                              capture_output=True, text=True)
        return done.returncode, done.stdout.strip()

    def test_is_the_newest_one_without_the_last_migration(self):
        self.git("init", "-q", "-b", "main")
        self.commit("migrations/0001_a.sql")
        older = self.commit("one.cc")
        newest = self.commit("migrations/0002_b.sql")
        last = self.commit("two.cc", "migrations/README.md")
        self.assertEqual((0, older), self.asked())
        self.assertEqual((0, newest), self.asked(STEPWELL_OLDER_COMMIT=newest[:10]))
        # One that is not committed yet is the newest.
        (self.root / "migrations" / "0003_c.sql").write_text("-- c\n")
        self.assertEqual((0, last), self.asked())

    def test_says_why_there_is_none(self):
        self.assertEqual((75, "no git history to take an older build from"), self.asked())
        self.git("init", "-q", "-b", "main")
        first = self.commit("migrations/0001_a.sql")
        self.assertEqual((75, "the history does not go back behind the last migration"), self.asked())
        self.git("checkout", "-q", "--orphan", "other")
        self.commit("migrations/0002_b.sql")
        for commit in [first, "nothing"]:
            self.assertEqual((64, f"STEPWELL_OLDER_COMMIT is {commit}; allowed: a commit of this history"),
                             self.asked(STEPWELL_OLDER_COMMIT=commit))

    def test_tells_its_use_and_builds_nothing_for_words_that_it_does_not_know(self):
        self.git("init", "-q", "-b", "main")
        self.commit("migrations/0001_a.sql")
        self.commit("migrations/0002_b.sql")
        kept = self.root / "build/older/0123"
        kept.mkdir(parents=True)
        for word, code in [("--help", 0), ("-h", 0), ("--what", 64), ("0123", 64)]:
            done = subprocess.run([str(self.root / "tests" / SCRIPT.name), word], env=self.environment, capture_output=True, text=True)
            self.assertEqual(code, done.returncode, word)
            self.assertIn("Usage: tests/older_programs.sh [--commit]\n", done.stdout if code == 0 else done.stderr)
        self.assertTrue(kept.exists())
        self.assertEqual([kept], list(kept.parent.iterdir()))


if __name__ == "__main__":
    unittest.main()
