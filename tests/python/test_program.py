"""The program that the wheel brings: the agent of its recorder, and the command `stepwell` of its environment."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import os
import pathlib
import platform
import re
import subprocess
import tempfile
import unittest
import zipfile

import product
from product import WAIT_S, ProductTest
from test_closing import closing, identity, page
from test_endings import COUNTS, RECORDED

_HERE = pathlib.Path(__file__).resolve()
_BACKEND = _HERE.parents[2] / "client" / "python" / "build_backend" / "stepwell_build.py"
# It is 19 MB (docs/python.md), 8 in the wheel; one that grows by half has taken in what it does not need.
_BYTES_MAX = 28_000_000
_WHEEL_BYTES_MAX = 11_000_000


def site() -> pathlib.Path:
    (found,) = pathlib.Path(product.python()).parents[1].glob("lib/python*/site-packages")
    return found


def own_program() -> pathlib.Path:
    return site() / "stepwell" / "_program" / "bin" / "stepwell"


def command() -> pathlib.Path:
    return pathlib.Path(product.python()).parent / "stepwell"


def said_by(*words: str, variables: dict[str, str] | None = None) -> tuple[int, str]:
    done = subprocess.run(words, env={**os.environ, **(variables or {})}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=WAIT_S)  # fmt: skip
    return done.returncode, done.stdout


def backend():
    spec = importlib.util.spec_from_file_location("stepwell_build", _BACKEND)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class ProgramTest(ProductTest):
    def setUp(self) -> None:
        if not own_program().exists():
            self.skipTest("the build has no stepwell_alone: cmake --build build/release --target stepwell_alone")

    def test_agent_rule_15_the_program_leans_on_the_c_library_alone_and_is_no_larger_than_it_was(self):
        code, said = said_by("readelf", "-d", str(own_program()))
        self.assertEqual(0, code, said)
        needed = {line.split("[")[1].split("]")[0] for line in said.splitlines() if "(NEEDED)" in line}
        system = {"libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1", "libresolv.so.2"}
        self.assertEqual(set(), {name for name in needed - system if not name.startswith("ld-linux")})
        self.assertNotIn("RUNPATH", said)
        self.assertNotIn("RPATH", said)
        _, sections = said_by("readelf", "-S", "-W", str(own_program()))
        self.assertNotIn(".debug_info", sections)
        self.assertNotIn(".symtab", sections)
        self.assertLess(own_program().stat().st_size, _BYTES_MAX)
        with tempfile.TemporaryFile() as packed:
            with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
                archive.write(own_program())
            self.assertLess(packed.tell(), _WHEEL_BYTES_MAX)

    def test_a_training_starts_the_agent_that_its_package_brings(self):
        scratch = tempfile.TemporaryDirectory(dir=product.folder())
        self.addCleanup(scratch.cleanup)
        out, err = self.run_trial(RECORDED + """
    import glob
    from stepwell import _identity
    print(_identity.agent(None))
    run.close()                                   # it has answered, so it is there
    def program_of(link):
        try: return os.readlink(link)
        except OSError: return ""                 # somebody else's, or gone
    print(os.path.realpath(_identity.agent(None)) in map(program_of, glob.glob("/proc/[0-9]*/exe")))
    """, variables={"STEPWELL_SPOOL_DIR": "unset", "STEPWELL_AGENT": "unset", "TMPDIR": scratch.name, "PATH": "/no/such/folder",
                    "STEPWELL_SHARED_MEMORY": ""})  # fmt: skip
        self.assertEqual(f"{own_program()}\nTrue\n", out)
        self.assertIn(f"stored: stepwell report {self.trial}", err)
        self.assertEqual(COUNTS, self.counts())

    def test_the_environments_command_is_that_program(self):
        code, said = said_by(str(command()), "version")
        self.assertEqual((0, said_by(product.program(), "version")[1]), (code, said))
        code, said = said_by(str(command()), "series", "no-such-trial", "--server", product.server())
        self.assertEqual(1, code, said)
        code, said = said_by(str(command()), "serve")
        self.assertEqual(64, code)
        self.assertIn("this program has no master", said)
        code, said = said_by(str(command()), "run", "--print", "python3", "train.py")
        self.assertIn(f"PYTHONPATH={own_program().parents[1]}/share/stepwell/python", said.replace('"', ""))
        texts = {text.name for text in site().glob("stepwell-*.dist-info/licenses/*.txt")}
        self.assertLessEqual({"libgrpc-dev.txt", "libssl-dev.txt", "rapidjson-dev.txt"}, texts)
        for name in ("sitecustomize.py", "stepwell_watch.py"):
            self.assertTrue((own_program().parents[1] / "share" / "stepwell" / "python" / name).is_file())
        # Without it the command says so.
        moved = own_program().with_name("moved")
        own_program().rename(moved)
        try:
            code, said = said_by(str(command()), "version")
        finally:
            moved.rename(own_program())
        self.assertEqual(1, code)
        self.assertIn("has no program", said)


    def test_one_that_cannot_be_run_is_named_and_the_environments_command_not_started_in_its_place(self):
        own_program().chmod(0o644)
        self.addCleanup(own_program().chmod, 0o755)
        out, _ = self.run_trial("from stepwell import _identity\nprint(_identity.agent(None))", variables={"STEPWELL_AGENT": "unset"})
        self.assertEqual(f"{own_program()}\n", out)


class BackendTest(unittest.TestCase):
    """What a wheel takes."""

    def files(self, named: str, module=None) -> dict[str, bytes]:
        before = os.environ.get("STEPWELL_WHEEL_PROGRAM")
        os.environ["STEPWELL_WHEEL_PROGRAM"] = named
        try:
            return (module or backend())._program_files()
        finally:
            os.environ.pop("STEPWELL_WHEEL_PROGRAM")
            if before is not None:
                os.environ["STEPWELL_WHEEL_PROGRAM"] = before

    def test_notice_names_each_library_inside_and_the_wheel_has_its_licence(self):
        root = _BACKEND.parents[3]
        names = (root / "client" / "cli" / "alone" / "CMakeLists.txt").read_text().split("foreach(name ")[1].split(")")[0]
        module = backend()
        self.assertEqual(sorted(names.split()), sorted(a for _, _, archives in module.INSIDE for a in archives.split()))
        section = (root / "NOTICE").read_text().split("The program in the Python package has inside")[1].split("\nTests and")[0]
        named = {line[2:].split("  ")[0] for line in section.splitlines() if line.startswith("  ")}
        self.assertEqual({name for name, _, _ in module.INSIDE}, named)
        texts = module._licence_files()
        self.assertEqual(len({package for _, package, _ in module.INSIDE}), len(texts))
        self.assertTrue(all(b"opyright" in text for text in texts.values()))
        self.assertTrue(any(b"Yann Collet" in text for text in texts.values()), "xxHash, which gRPC has inside")

    def test_off_leaves_it_out(self):
        self.assertEqual({}, self.files("off"))

    def test_what_is_no_program_of_this_release_is_refused_with_what_to_do(self):
        for named, said in (("/no/such/program", "cannot be run"), ("/bin/echo", "is not of version"),
                            (str(_BACKEND), "cannot be run")):  # fmt: skip
            with self.subTest(named), self.assertRaisesRegex(RuntimeError, said):
                self.files(named)

    def test_what_was_built_and_does_not_run_here_is_left_out_and_an_old_one_taken_with_a_warning(self):
        with tempfile.TemporaryDirectory() as folder:
            built = pathlib.Path(folder) / "stepwell"
            module = backend()
            module._BUILT_PROGRAM = built
            for content, said in ((None, "cannot be run"), (b"\x7fELF of no machine", "cannot be run"),
                                  (b"#!/bin/sh\nexit 1\n", "is not of version")):  # fmt: skip
                if content is not None:
                    built.write_bytes(content)
                    built.chmod(0o755)
                with self.subTest(content), contextlib.redirect_stderr(io.StringIO()) as err:
                    self.assertEqual({}, self.files("", module))
                    self.assertIn(said, err.getvalue())
                    self.assertIn("cmake --build build/release --target stepwell_alone", err.getvalue())
                    self.assertIn("STEPWELL_WHEEL_PROGRAM", err.getvalue())
            built.write_text(f"#!/bin/sh\necho stepwell {module.version()}\n")
            for seconds, is_told in ((0, True), (4e9, False)):
                os.utime(built, (seconds, seconds))
                with self.subTest(seconds), contextlib.redirect_stderr(io.StringIO()) as err:
                    self.assertIn("stepwell/_program/bin/stepwell", self.files("", module))
                    self.assertEqual(is_told, "is older than" in err.getvalue())

    def test_the_one_that_is_named_is_taken_with_what_it_puts_before_programs(self):
        found = self.files(product.program())
        self.assertEqual({"stepwell/_program/bin/stepwell", "stepwell/_program/share/stepwell/python/sitecustomize.py",
                          "stepwell/_program/share/stepwell/python/stepwell_watch.py"}, set(found))  # fmt: skip


class DefaultsTest(unittest.TestCase):
    """Where a master listens of which nobody said where: each part has that by itself."""

    def test_all_parts_know_the_same_ports_of_a_master_of_which_nobody_says_where_it_is(self):
        def in_file(path: str, pattern: str) -> str:
            (found,) = re.findall(pattern, (_HERE.parents[2] / path).read_text())
            return found

        def in_help(pattern: str, *words: str) -> str:
            code, said = said_by(product.program(), *words, "--help")
            self.assertEqual(0, code, said)
            (found,) = re.findall(pattern, " ".join(said.split()))
            return found

        grpc = in_help(r"--grpc-listen HOST:PORT for gRPC[^()]*\((\S+)\)", "serve")
        http = in_help(r"--http-listen HOST:PORT for HTTP[^()]*\((\S+)\)", "serve")
        self.assertRegex(grpc, r"^127\.0\.0\.1:\d+$")
        self.assertRegex(http, r"^127\.0\.0\.1:\d+$")
        host, _, port = grpc.rpartition(":")
        self.assertEqual((host, int(port)), identity._LOOPBACK)
        self.assertEqual({"", grpc, f"localhost:{port}"}, set(page._LOOPBACKS))
        self.assertEqual(f"http://{http}", page._DEFAULT)
        self.assertEqual("stepwell serve, and its agent sends it", closing._first_at(grpc))
        self.assertEqual(grpc, in_file("client/agent/agent_options.cc", r'kServerDefault\[\] = "(.*)";'))
        self.assertEqual(grpc, in_help(r"or STEPWELL_SERVER; default (\S+)\)", "agent"))
        self.assertEqual(port, in_file("client/cli/options.h", r"kDefaultGrpcPort = (\d+);"))
        self.assertEqual(grpc, in_help(r"\(STEPWELL_SERVER, else (\S+)\)", "upload"))


class TagTest(unittest.TestCase):
    def test_the_wheels_tag_is_this_glibc_and_nothing_inside_asks_for_a_newer_one(self):
        (wheel,) = site().glob("stepwell-*.dist-info/WHEEL")
        (tag,) = [line[len("Tag: "):] for line in wheel.read_text().splitlines() if line.startswith("Tag: ")]
        libc, _, number = (os.confstr("CS_GNU_LIBC_VERSION") or "").partition(" ")
        self.assertEqual("glibc", libc)
        self.assertEqual(number.replace(".", "_"), tag.partition("manylinux_")[2].rpartition(f"_{platform.machine()}")[0], tag)
        for file in [*site().glob("stepwell/_core*.so"), *filter(pathlib.Path.exists, [own_program()])]:
            code, said = said_by("readelf", "--version-info", "--wide", str(file))
            self.assertEqual(0, code, said)
            asked = [tuple(map(int, version.split("."))) for version in re.findall(r"GLIBC_([0-9.]+)", said)]
            self.assertLessEqual(max(asked), tuple(map(int, number.split("."))), file)


class WithoutProgramTest(ProductTest):
    def test_a_package_without_says_at_its_begin_what_is_missing(self):
        scratch = tempfile.TemporaryDirectory(dir=product.folder())
        self.addCleanup(scratch.cleanup)
        package = pathlib.Path(scratch.name) / "stepwell"
        subprocess.run(["cp", "-r", str(site() / "stepwell"), str(package)], check=True)
        subprocess.run(["rm", "-rf", str(package / "_program")], check=True)
        out, err = self.run_trial("""
            import stepwell
            run = stepwell.init()
            print("begun", flush=True)
            run.record("value", 1)
            print(stepwell.__file__)
            """, options=("-S",), variables={"PYTHONPATH": scratch.name, "STEPWELL_AGENT": "unset", "PATH": "/no/such/folder",
                                             "STEPWELL_SPOOL_DIR": f"{scratch.name}/spool", "STEPWELL_EXIT_WAIT": "0"})  # fmt: skip
        self.assertEqual(f"begun\n{package}/__init__.py\n", out)
        said = ("this package was built without its own: cmake --build build/release --target stepwell_alone, then install it anew "
                "(or STEPWELL_WHEEL_PROGRAM=FILE takes another build's; docs/python.md, the first lines)")  # fmt: skip
        self.assertEqual(1, err.count(said), err)


if __name__ == "__main__":
    unittest.main()
