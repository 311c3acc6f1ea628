"""Where the extension cannot be loaded: one warning, and the training goes on."""

import importlib.util
import os
import pathlib
import shutil
import sys
import tempfile
import textwrap
import unittest
import zipfile
from typing import Any
from unittest import mock

import product
from product import ProductTest
from test_hooks import _FAKE

_PACKAGE = pathlib.Path(__file__).resolve().parents[2] / "client" / "python"
_TRAINING = """
    import asyncio, stepwell
    with stepwell.init(trial="x", groups=["gpu"]) as run:
        for index, batch in run.steps("ab"):
            with run.scope("train_batch") as scope: print(index, batch, scope.name, end=" ")
            run.record("loss", 1)
            run.series("examples", unit="1").record(2)
    @run.scope("function")
    def add(a, b): return a + b
    @run.scope("coroutine")
    async def wait(): return 4
    print(add(1, 2), asyncio.run(wait()), len(run.steps("abc")), run.dropped_count)
    with run.scope(), run.scope("a", "b"), run.scope(nome="a"): run.record("a"); run.record(); run.record("a", valeu=1)
    run.on(); run.off(); run.flush(); run.close()
    """
_OLD_PYTHON = shutil.which(os.environ.get("STEPWELL_OLD_PYTHON", "pypy3")) or ""  # of the syntax of 3.9; no extension is for it
_PRINTED = "0 a train_batch 1 b train_batch 3 4 3 0\n"


class AbsentTest(ProductTest):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(dir=product.folder())
        self.addCleanup(scratch.cleanup)
        self.site = pathlib.Path(scratch.name)
        (source,) = pathlib.Path(product.python()).parents[1].glob("lib/python*/site-packages/stepwell")
        shutil.copytree(source, self.site / "stepwell")
        (self.extension,) = (self.site / "stepwell").glob("_core*.so")

    def run_here(self, source: str, **more) -> tuple[str, str]:
        variables = {"PYTHONPATH": str(self.site), **more.pop("variables", {})}
        return self.run_trial(source, variables=variables, **more)

    def test_agent_rule_15_training_goes_on_with_one_warning(self):
        for name, break_it in [("missing", self.extension.unlink), ("empty", lambda: self.extension.write_bytes(b"")),
                               ("damaged", lambda: self.extension.write_bytes(b"\x7fELF" + bytes(1000)))]:  # fmt: skip
            with self.subTest(name):
                break_it()
                out, err = self.run_here(_TRAINING)
                self.assertEqual(_PRINTED, out)
                self.assertEqual(1, err.count("stepwell: nothing is recorded: "), err)
                self.assertEqual(1, err.count("Warning"), err)

    def test_an_extension_that_fails_in_another_way_is_as_good_as_none(self):
        self.extension.unlink()
        (self.site / "stepwell" / "_core.py").write_text("raise RuntimeError('other')")
        out, err = self.run_here(_TRAINING)
        self.assertEqual(_PRINTED, out)
        self.assertIn("nothing is recorded: other", err)

    def test_where_warnings_are_errors_it_goes_on(self):
        self.extension.unlink()
        out, err = self.run_here(_TRAINING, options=("-W", "error"))
        self.assertEqual(_PRINTED, out)
        self.assertEqual(1, len(err.splitlines()), err)

    def test_agent_rule_15_a_system_that_lacks_what_is_asked_of_it_goes_on_with_one_warning(self):
        self.extension.unlink()
        out, err = self.run_here("""
            import builtins, os, sys, types
            del os.geteuid, os.getuid, os.fork, os.register_at_fork
            sys.modules["fcntl"] = None
            # What stepwell imports on such a system, no more.
            platform, sys.platform = sys.platform, "win32"
            import stepwell
            sys.platform = platform
            """ + textwrap.dedent(_TRAINING).replace("\n", "\n            ") + """
            run = stepwell.init(schedule=stepwell.schedule(wait=1, active=1, repeat=1))
            print([index for index, _ in run.steps("abc", epoch=0)], run.upload_trace("x"), run.state)
            from stepwell.integrations.pytorch import TrainingLoop
            training = TrainingLoop()
            for index, batch in training.steps("ab", epoch=1):
                with training.train_batch: training.record("loss", 1)
            print(list(training.evaluate("xy")), index)
            from stepwell.integrations.lightning import Actions
            from stepwell.integrations._watch import watch_call, watch_loader, watch_model
            actions = Actions()
            for action in ("[_TrainingEpochLoop].train_dataloader_next", "run_training_batch"):
                actions.start(action); actions.stop(action)
            class Loader(list): pass
            class Model:
                def __call__(self, batch): return batch
                def step(self): return 1
            loader, model = Loader("ab"), Model()
            watch_loader(loader, lambda: None, lambda *_: None)
            watch_model(model, lambda *_: None, lambda: None); watch_call(model, "step", lambda: None, lambda: None)
            print(list(loader), model(7), model.step())
            import torch
            profiler = types.ModuleType("torch.profiler")
            class Profile:
                current_action = "RECORD"
                def __init__(self, on_trace_ready, **_): self.ready = on_trace_ready
                def start(self): pass
                def step(self): self.ready(self)
                def stop(self): pass
                def export_chrome_trace(self, path): print("wrote")
            profiler.profile, profiler.record_function = Profile, None
            profiler.ProfilerAction = types.SimpleNamespace(NONE=0, WARMUP=1, RECORD="RECORD", RECORD_AND_SAVE=3)
            torch.profiler = sys.modules["torch.profiler"] = profiler
            with stepwell.torch_profiler() as profiled: profiled.step()
            for batch in torch.utils.data.DataLoader("ab"): torch.nn.Model()(batch)
            run.close()
            """, variables={"PYTHONPATH": f"{self.site}:{_FAKE}", "STEPWELL_SERVER": "unset", "STEPWELL_SPOOL_DIR": "unset",
                            "STEPWELL_AGENT": "unset"})  # fmt: skip
        self.assertEqual(_PRINTED + "[0, 1, 2] False closed\n['x', 'y'] 4\n['a', 'b'] 7 1\n", out)
        self.assertEqual(1, err.count("Warning"), err)
        self.assertIn("stepwell: nothing is recorded: win32 is not Linux", err)

    @unittest.skipUnless(_OLD_PYTHON, "there is no pypy3, which is a Python 3.9; tests/run.sh --long --only frameworks installs it")
    def test_agent_rule_15_a_python_3_9_runs_all_of_it(self):
        """PyPy, whose language is that of 3.9, goes through all lines but those beside the extension."""
        out, err = self.run_here("""
            import sys
            assert sys.version_info[:2] == (3, 9), sys.version
            """ + textwrap.dedent(_TRAINING).replace("\n", "\n            ") + """
            import importlib, pkgutil
            # Those of frameworks import these where they are asked for a class.
            found = [one.name for one in pkgutil.walk_packages(stepwell.__path__, "stepwell.") if "_core" not in one.name]
            for name in found: importlib.import_module(name)
            print(len(found) > 40, "stepwell.integrations.keras" in found, "stepwell.hooks._torch" in found)
            run = stepwell.init(schedule=stepwell.schedule(wait=1, active=1, repeat=1), labels={"a": "b"}, interval=0.5)
            print([index for index, _ in run.steps("abc", epoch=0)], run.trial)
            from stepwell.integrations.pytorch import TrainingLoop
            training = TrainingLoop()
            for index, batch in training.steps("ab", epoch=1):
                with training.train_batch: training.record("loss", 1)
            run.close()
            """, interpreter=_OLD_PYTHON)  # fmt: skip
        self.assertEqual(_PRINTED + f"True True True\n[0, 1, 2] {self.trial}\n", out)
        self.assertEqual(1, err.count("stepwell: nothing is recorded: "), err)
        self.assertEqual(1, err.count("Warning"), err)

    def test_wrong_options_are_refused_all_the_same(self):
        self.extension.unlink()
        out, _ = self.run_here("""
            import stepwell
            try: stepwell.init(interval=0)
            except ValueError as error: print(error)
            """)
        self.assertIn("interval", out)

    def test_what_stands_in_has_all_names_of_the_extension(self):
        out, _ = self.run_here("""
            from stepwell import _absent, _core
            def names(of): return {name for name in dir(of) if not name.startswith("_")}
            missing = names(_core) - names(_absent)
            for kind in ("Scope", "Series", "Steps", "Loop", "Recording"):
                missing |= names(getattr(_core, kind)) - names(getattr(_absent, kind)) - {"name"}
            print(sorted(missing), _core.version == _absent.version)
            """)
        self.assertEqual("[] True\n", out)


class PackageTest(ProductTest):
    """What pip installed."""

    def files(self) -> pathlib.Path:
        (found,) = pathlib.Path(product.python()).parents[1].glob("lib/python*/site-packages")
        return found

    def test_agent_rule_15_it_leans_on_the_c_library_and_shows_one_name(self):
        import subprocess

        (extension,) = self.files().glob("stepwell/_core*.so")
        needed = subprocess.run(["readelf", "-d", str(extension)], stdout=subprocess.PIPE, text=True, check=True).stdout
        libraries = {line.split("[")[1].split("]")[0] for line in needed.splitlines() if "(NEEDED)" in line}
        system = {"libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2"}
        self.assertEqual(set(), {name for name in libraries - system if not name.startswith("ld-linux")})
        shown = subprocess.run(["nm", "-D", "--defined-only", str(extension)], stdout=subprocess.PIPE, text=True,
                               check=True).stdout  # fmt: skip
        self.assertEqual(["PyInit__core"], [line.split()[-1] for line in shown.splitlines()])

    def test_it_says_what_it_is(self):
        out, _ = self.run_trial("""
            import importlib.metadata, stepwell
            print(importlib.metadata.version("stepwell") == stepwell.__version__)
            """)
        self.assertEqual("True\n", out)
        self.assertTrue((self.files() / "stepwell" / "py.typed").is_file())
        (wheel,) = self.files().glob("stepwell-*.dist-info/WHEEL")
        self.assertRegex(wheel.read_text(), r"Tag: cp3\d+-cp3\d+-manylinux_2_\d+_\w+")

    def test_a_wheel_names_the_interpreter_whose_it_is(self):
        backend = self.backend()
        for soabi, ending in [("cpython-313t-x86_64-linux-gnu", "313t"), ("cpython-39-x86_64-linux-gnu", "39")]:
            with mock.patch.object(backend.sysconfig, "get_config_var", lambda name, soabi=soabi: soabi):
                self.assertEqual(f"cp{ending}", backend._tag().split("-")[1])

    @staticmethod
    def backend() -> Any:
        spec = importlib.util.spec_from_file_location("stepwell_build", _PACKAGE / "build_backend" / "stepwell_build.py")
        assert spec is not None and spec.loader is not None
        backend = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(backend)
        return backend

    def test_an_editable_installation_is_the_checkouts_package(self):
        scratch = tempfile.TemporaryDirectory(dir=product.folder())
        self.addCleanup(scratch.cleanup)
        checkout, site = pathlib.Path(scratch.name) / "python", pathlib.Path(scratch.name) / "site"
        shutil.copytree(_PACKAGE, checkout, ignore=shutil.ignore_patterns("_core.cpython-*"))
        (extension,) = self.files().glob("stepwell/_core*.so")
        backend = self.backend()
        program = {"stepwell/_program/bin/stepwell": b"#!/bin/sh\necho $0 $*\n"}
        wheels = []
        for found in ({}, program):
            with mock.patch.object(backend, "_HERE", checkout), \
                    mock.patch.object(backend, "_program_files", lambda found=found: found), \
                    mock.patch.object(backend, "_build_extension", extension.read_bytes):  # fmt: skip
                wheel = zipfile.ZipFile(pathlib.Path(scratch.name) / backend.build_editable(scratch.name))
            wheels.append([name for name in wheel.namelist() if name.endswith(".data/scripts/stepwell")])
            wheel.extractall(site)
            wheel.close()
        self.assertEqual([0, 1], [len(names) for names in wheels])
        # As pip puts it, but for the environment's interpreter in its first line.
        command = (site / wheels[1][0]).read_text().replace("#!python", f"import site; site.addsitedir({str(site)!r})")
        out, _ = self.run_trial(f"import sys\nsys.argv[1:] = ['version']\nexec({command!r})", interpreter=sys.executable)
        self.assertEqual(f"{checkout}/stepwell/_program/bin/stepwell version\n", out)
        (checkout / "stepwell" / "_tell.py").open("a").write("\nedited = 4\n")
        out, _ = self.run_trial(f"""
            import site; site.addsitedir({str(site)!r})
            import importlib.metadata, stepwell
            print(stepwell.__file__, stepwell._load.core.__name__, stepwell._tell.edited,
                  importlib.metadata.version("stepwell") == stepwell.__version__)
            """, interpreter=sys.executable)  # fmt: skip
        self.assertEqual(f"{checkout}/stepwell/__init__.py stepwell._core 4 True\n", out)

    def test_an_import_brings_no_foreign_and_no_slow_module(self):
        out, _ = self.run_trial("""
            import sys
            before = set(sys.modules)
            import stepwell
            print(*sorted(set(sys.modules) - before))
            """, options=("-I",))  # fmt: skip
        theirs = [name for name in out.split() if name.partition(".")[0] != "stepwell"]
        self.assertLessEqual(len(theirs), 2, theirs)

    def test_python_3_9_reads_it(self):
        import ast

        paths = sorted(self.files().glob("stepwell/**/*.py*"))
        self.assertIn("hooks", {path.parent.name for path in paths})
        for path in paths:
            if path.suffix in (".py", ".pyi"):
                ast.parse(path.read_text(encoding="utf-8"), str(path), feature_version=(3, 9))
        self.assertTrue(os.path.isfile(self.files() / "stepwell" / "_core.pyi"))


if __name__ == "__main__":
    unittest.main()
