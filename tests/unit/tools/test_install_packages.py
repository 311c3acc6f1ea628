"""deploy/install_packages.sh beside a made-up dpkg and apt-get: what it asks for, and what it says
where it cannot install. The names of the packages are those of the real list."""

import os
import pathlib
import subprocess
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).parents[3] / "deploy" / "install_packages.sh"

# Answers "installed" for every package but those in $MISSING.
DPKG_QUERY = """#!/bin/sh
for name; do :; done
case " $MISSING " in *" $name "*) exit 1 ;; esac
printf installed
"""
APT_GET = """#!/bin/sh
echo "$*" >>"$APT_LOG"
exit "$APT_EXIT"
"""


class InstallPackagesTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.apt_log = self.folder / "apt.log"
        for name, text in [("dpkg-query", DPKG_QUERY), ("apt-get", APT_GET), ("sudo", '#!/bin/sh\n[ "$1" = -n ] && shift\nexec "$@"\n')]:
            (self.folder / name).write_text(text)
            (self.folder / name).chmod(0o755)

    def run_script(self, *arguments: str, missing: str = "", apt_exit: int = 0) -> subprocess.CompletedProcess:
        environment = {**os.environ, "PATH": f"{self.folder}:{os.environ['PATH']}", "MISSING": missing,
                       "APT_LOG": str(self.apt_log), "APT_EXIT": str(apt_exit)}
        return subprocess.run([str(SCRIPT), *arguments], env=environment, capture_output=True, text=True)

    def test_does_nothing_where_all_is_installed(self):
        done = self.run_script("build", "run")
        self.assertEqual((0, ""), (done.returncode, done.stderr))
        self.assertFalse(self.apt_log.exists())

    def test_installs_only_what_its_sections_lack(self):
        done = self.run_script("build", missing="cmake libgtest-dev")
        self.assertEqual(0, done.returncode, done.stderr)
        calls = self.apt_log.read_text().splitlines()
        self.assertEqual("update -q", calls[0])
        self.assertTrue(calls[1].endswith("--no-install-recommends cmake"), calls)

    def test_help_names_each_section(self):
        sections = [line.strip("[]\n") for line in SCRIPT.with_name("packages.txt").open() if line.startswith("[")]
        told = self.run_script("--help").stdout.split("packages.txt: ")[1].split(".\n")[0]
        self.assertEqual(sorted(sections), sorted(told.split(", ")))

    def test_missing_lists_names_only(self):
        done = self.run_script("--missing", "build", "test", missing="cmake libgtest-dev")
        self.assertEqual("cmake\nlibgtest-dev\n", done.stdout)

    def test_says_what_is_missing_where_it_cannot_install(self):
        done = self.run_script("build", missing="cmake", apt_exit=100)
        self.assertEqual(69, done.returncode)
        self.assertIn("missing: cmake", done.stderr)
        self.assertIn("apt-get install --no-install-recommends cmake", done.stderr)

    def test_a_command_of_another_origin_serves(self):
        (self.folder / "node").write_text("#!/bin/sh\n")
        (self.folder / "node").chmod(0o755)
        done = self.run_script("--missing", "test", missing="nodejs curl")
        self.assertEqual("curl\n", done.stdout)

    def test_refuses_an_unknown_section(self):
        done = self.run_script("biuld")
        self.assertEqual(64, done.returncode)
        self.assertIn("no section [biuld]", done.stderr)


if __name__ == "__main__":
    unittest.main()
