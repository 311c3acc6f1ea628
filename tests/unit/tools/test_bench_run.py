"""bench/run.sh before it builds: names of benches are looked for in the sources."""

import os
import pathlib
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).parents[3]


class BenchRunTest(unittest.TestCase):
    def only(self, name: str) -> subprocess.CompletedProcess:
        """With a cmake that fails, as 1."""
        with tempfile.TemporaryDirectory() as folder:
            cmake = pathlib.Path(folder, "cmake")
            cmake.write_text("#!/bin/sh\nexit 9\n")
            cmake.chmod(0o755)
            return subprocess.run([str(ROOT / "bench/run.sh"), "--only", name, "--json", f"{folder}/out.json"], capture_output=True,
                                  text=True, env=os.environ | {"PATH": f"{folder}:{os.environ['PATH']}"})

    def test_a_name_that_no_bench_has_is_told_before_anything_is_built(self):
        for name in ("nothing", "nothing.at_all", "record"):
            done = self.only(name)
            self.assertEqual(64, done.returncode, done.stderr)
            told, names = done.stderr.strip().split("; there are: ")
            self.assertEqual(f"no bench is called '{name.split('.')[0]}'", told)
            # Of C++, of Python, of some machines alone.
            self.assertLessEqual({"recorder", "training", "hooks", "web", "agent", "rivals"}, set(names.split()))

    def test_one_that_there_is_is_built_first(self):
        for name in ("recorder", "recorder.scope", "training.step", "rivals"):
            done = self.only(name)
            self.assertEqual((1, ""), (done.returncode, done.stderr))


if __name__ == "__main__":
    unittest.main()
