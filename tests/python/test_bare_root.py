"""The wheel in a root of the same C library that has Python and nothing of Debian's beside it."""

from __future__ import annotations

import os
import pathlib
import re
import shutil
import subprocess
import sysconfig
import tempfile
import unittest

import product
from product import WAIT_S, ProductTest

# A user who is not root is root in a namespace of its own, where the kernel lets people have one.
_UNSHARED = ("unshare", "--mount") if os.geteuid() == 0 else ("unshare", "--mount", "--map-root-user")
_LEFT_OUT = ("__pycache__", "dist-packages", "site-packages", "config-*", "test", "tests", "idlelib", "ensurepip",
             "tkinter", "lib2to3", "pydoc_data", "*.a")  # fmt: skip
_ENTER = 'mount --rbind /proc "$0/proc" && mount --rbind /dev "$0/dev" && exec chroot "$0" "$@"'
# Of glibc, and what the interpreter itself is linked to.
_C_LIBRARY = r"(ld-linux.*|lib(c|m|dl|pthread|rt|resolv|util))\.so.*"


def _libraries_of(program: str) -> list[str]:
    """Its loader among them."""
    said = subprocess.run(["ldd", program], stdout=subprocess.PIPE, text=True, check=True).stdout
    return re.findall(r"(/\S+) \(0x", said)


class BareRootTest(ProductTest):
    def setUp(self) -> None:
        done = subprocess.run([*_UNSHARED, "true"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if done.returncode != 0:
            self.skipTest("this kernel lets nobody have mounts of their own")
        scratch = tempfile.TemporaryDirectory(dir=product.folder())
        self.addCleanup(scratch.cleanup)
        self.root = pathlib.Path(scratch.name) / "root"
        self.interpreter = os.path.realpath(product.python())
        for file in (self.interpreter, *_libraries_of(self.interpreter)):
            self.copy(file)
        library = sysconfig.get_path("stdlib")
        shutil.copytree(library, self.root / library.lstrip("/"), ignore=shutil.ignore_patterns(*_LEFT_OUT))
        for folder in ("proc", "dev", "tmp", "site"):
            (self.root / folder).mkdir()
        (package,) = pathlib.Path(product.python()).parents[1].glob("lib/python*/site-packages/stepwell")
        shutil.copytree(package, self.root / "site" / "stepwell")

    def copy(self, file: str) -> None:
        place = self.root / file.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, place)

    def run_within(self, source: str, variables: dict[str, str]) -> subprocess.CompletedProcess[str]:
        words = [*_UNSHARED, "/bin/sh", "-c", _ENTER, str(self.root), self.interpreter, "-S", "-c", source]
        done = subprocess.run(words, env={**variables, "STEPWELL_TRIAL": self.trial, "STEPWELL_SYSTEM_METRICS": "0",
                                          "PATH": os.environ["PATH"]},
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              timeout=2 * WAIT_S)  # fmt: skip
        self.assertEqual(0, done.returncode, done.stdout + done.stderr)
        return done

    def test_agent_rule_15_the_agent_of_a_wheel_delivers_where_there_is_the_c_library_alone(self) -> None:
        program = self.root / "site" / "stepwell" / "_program" / "bin" / "stepwell"
        if not program.is_file():
            self.skipTest("the build has no stepwell_alone: cmake --build build/release --target stepwell_alone")
        for file in _libraries_of(str(program)):
            self.assertRegex(os.path.basename(file), f"^{_C_LIBRARY}$")
            self.copy(file)
        source = """if True:
            import sys
            sys.path.insert(0, "/site")
            import stepwell
            run = stepwell.init()
            for batch_index, batch in run.steps("abc"):
                with run.scope("train_batch"): run.record("loss", batch_index)
            """
        done = self.run_within(source, {"STEPWELL_SERVER": product.server(), "STEPWELL_EXIT_WAIT": "60",
                                        "STEPWELL_SPOOL_DIR": "/tmp/spool", "STEPWELL_AGENT_IDLE_EXIT": "1"})  # fmt: skip
        self.assertIn(f"stored: stepwell report {self.trial}", done.stderr)
        self.assertEqual({"step": 3, "dataloader_next": 4, "train_batch": 3, "loss": 3}, self.counts())

        def is_over() -> bool:  # before its root goes
            for link in pathlib.Path("/proc").glob("[0-9]*/exe"):
                try:
                    if os.readlink(link).endswith("/site/stepwell/_program/bin/stepwell"):
                        return False
                except OSError:  # somebody else's, or gone
                    continue
            return True

        self.assertTrue(self.eventually(is_over), "its agent stayed")

    def test_agent_rule_15_a_wheel_records_where_there_is_python_and_the_c_library_alone(self) -> None:
        libraries = sorted(path.name for path in self.root.rglob("*.so*") if "lib-dynload" not in str(path)
                           and "site" not in path.parts)  # fmt: skip
        self.assertFalse([name for name in libraries if re.match(r"lib(stdc\+\+|gcc_s|absl|grpc|protobuf)", name)])
        source = """if True:
            import sys
            sys.path.insert(0, "/site")
            import stepwell
            run = stepwell.init(spool_dir="/tmp/spool")
            for batch_index, batch in run.steps("abc"):
                with run.scope("train_batch"): run.record("loss", batch_index)
            print(stepwell._load.core.__name__, run.state, run.dropped_count)
            run.close()
            """
        done = self.run_within(source, {"STEPWELL_OFFLINE": "1", "STEPWELL_AGENT": "off"})
        self.assertEqual("stepwell._core recording 0\n", done.stdout, done.stderr)
        # What it recorded there is a spool as any other's.
        sent = subprocess.run([product.program(), "upload", str(self.root / "tmp" / "spool"), "--server", product.server()],
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=2 * WAIT_S)  # fmt: skip
        self.assertEqual(0, sent.returncode, sent.stdout)
        # The last fetch is the one that finds the end.
        self.await_counts({"step": 3, "dataloader_next": 4, "train_batch": 3, "loss": 3})


if __name__ == "__main__":
    unittest.main()
