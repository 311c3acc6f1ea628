"""deploy/quickstart.sh before it builds anything: wrong use, and packages that cannot be installed."""

import os
import pathlib
import subprocess
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).parents[3] / "deploy" / "quickstart.sh"


def run_script(*arguments: str, path: str = os.environ["PATH"]) -> subprocess.CompletedProcess:
    return subprocess.run([str(SCRIPT), *arguments], env={**os.environ, "PATH": path}, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True)


class QuickstartTest(unittest.TestCase):
    def test_refuses_wrong_use(self):
        for arguments, words in [(("--twice",), "unknown argument '--twice'"),
                                 (("--data-dir",), "--data-dir needs a folder"),
                                 (("--seconds", "soon"), "--seconds is 'soon'; allowed: 1 ... 99999"),
                                 (("--seconds", "0"), "--seconds is '0'"),
                                 (("--seconds",), "--seconds is ''")]:
            with self.subTest(arguments):
                done = run_script(*arguments)
                self.assertEqual((64, ""), (done.returncode, done.stdout))
                self.assertIn(words, done.stderr)

    def test_helps(self):
        done = run_script("--help")
        self.assertEqual((0, ""), (done.returncode, done.stderr))
        for option in ["--once", "--data-dir", "--seconds"]:
            self.assertIn(option, done.stdout)

    def test_names_the_packages_that_it_cannot_install(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in ["dpkg-query", "apt-get", "sudo"]:
                # Nothing is installed, and nothing can be.
                pathlib.Path(folder, name).write_text("#!/bin/sh\nexit 1\n")
                pathlib.Path(folder, name).chmod(0o755)
            # Settings that the installation would write stay in a folder of its own: tee is made up too.
            for name in ["tee", "mkdir", "rm", "rmdir"]:
                # Who writes into a tee that does not read is ended by SIGPIPE, now and then.
                body = "exec cat >/dev/null" if name == "tee" else "exit 0"
                pathlib.Path(folder, name).write_text(f"#!/bin/sh\n{body}\n")
                pathlib.Path(folder, name).chmod(0o755)
            done = run_script(path=f"{folder}:{os.environ['PATH']}")
        self.assertEqual(69, done.returncode, done.stderr)
        self.assertIn("apt-get install --no-install-recommends", done.stderr)
        self.assertIn("postgresql-15", done.stderr)


if __name__ == "__main__":
    unittest.main()
