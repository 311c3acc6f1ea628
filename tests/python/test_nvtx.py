"""Scopes as NVTX's ranges: by what makes them, and as a library takes them that is injected as Nsight's is."""

import functools
import os
import pathlib
import subprocess
import tempfile
import unittest

import product
from product import ProductTest
from test_torch_profiler import _TORCH

_VARIABLE = "STEPWELL_NVTX_PYTHON"  # that has the packages of nvtx.txt
_SOURCE = str(pathlib.Path(__file__).with_name("nvtx_injection.c"))
_INJECTED = {"NVTX_INJECTION64_PATH": "/nowhere/libToolsInjection64.so"}

_PACKAGE = """
told = []
def push_range(message, color): told.append(message)
def pop_range(): told.append("/")
"""
_TRAINING = """
import os, sys, threading, stepwell
sys.path.insert(0, os.environ["MADE_UP"])
with stepwell.init(hooks=False) as run:
    import nvtx
    with run.scope("a"), run.scope("b"): pass
    outer, inner = run.scope("outer"), run.scope("inner")
    outer.__enter__(); inner.__enter__(); outer.__exit__(None, None, None)
    print(*nvtx.told)
    inner.__exit__(None, None, None)
    print(*nvtx.told[-3:])
    left = run.scope("left")
    left.__enter__()
    thread = threading.Thread(target=left.__exit__, args=(None, None, None))
    thread.start(); thread.join()
    print(*nvtx.told[-2:])
    with run.scope("next"): print(*nvtx.told[-3:], flush=True)
    with run.scope("parent's"):
        if os.fork() == 0:
            with stepwell.init(hooks=False), run.scope("child's"): pass
            told = len(nvtx.told), nvtx.told[-1]
        else:
            os.wait()
            told = None
    if told is not None:
        print(told[1], len(nvtx.told) - told[0], flush=True); os._exit(0)
    def fails(*_): raise OSError
    nvtx.push_range = nvtx.pop_range = fails
print(*nvtx.told[-2:])
"""


class RangesTest(ProductTest):
    def setUp(self):
        super().setUp()
        scratch = tempfile.TemporaryDirectory(dir=product.folder())
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        (self.folder / "nvtx.py").write_text(_PACKAGE)

    def run_made_up(self, source: str, variables: dict[str, str] = _INJECTED) -> str:
        return self.run_trial(source, variables={"MADE_UP": str(self.folder), "PYTHONPATH": str(self.folder), **variables})[0]

    def test_scopes_are_ranges_of_their_thread_and_none_of_a_forked_childs(self):
        self.assertEqual("a b / / outer inner\ninner / /\n/ left\nleft / next\nparent's 0\nparent's /\n",
                         self.run_made_up(_TRAINING))  # fmt: skip

    def test_where_nobody_takes_ranges_nothing_of_it_is_loaded(self):
        out = self.run_made_up("""
            import sys, stepwell
            with stepwell.init(hooks=False) as run, run.scope("a"): pass
            print(*{"nvtx", "stepwell._nvtx"} & set(sys.modules), "none")
            """, {})
        self.assertEqual("none\n", out)

    def test_what_raises_is_not_the_trainings(self):
        (self.folder / "nvtx.py").write_text("def push_range(*_): raise OSError\npop_range = push_range\n")
        self.assertEqual("within\n", self.run_made_up("""
            import stepwell
            with stepwell.init(hooks=False) as run, run.scope("a"): print("within")
            """))
        (self.folder / "nvtx.py").write_text("raise OSError\n")
        self.assertEqual("within\n", self.run_made_up("""
            import stepwell
            with stepwell.init(hooks=False) as run, run.scope("a"): print("within")
            """))

    def test_torchs_are_taken_where_it_has_cuda_and_comes_later(self):
        (self.folder / "nvtx.py").write_text("raise ImportError\n")
        out = self.run_made_up("""
            import sys, types, stepwell
            told = []
            with stepwell.init(hooks=False) as run:
                with run.scope("before"): pass
                version = sys.modules["torch.version"] = types.ModuleType("torch.version")
                made_up = sys.modules["torch.cuda.nvtx"] = types.ModuleType("torch.cuda.nvtx")
                made_up.range_push, made_up.range_pop = told.append, lambda: told.append("/")
                version.cuda = None
                with run.scope("without"): pass
                version.cuda = "12.6"
                with run.scope("a"): pass
            print(*told)
            """)
        self.assertEqual("a /\n", out)

    @unittest.skipUnless(_TORCH, "torch is not installed: deploy/install_packages.sh torch")
    def test_what_a_profiler_of_torchs_is_told_is_no_range_besides(self):
        out, _ = self.run_trial("""
            import nvtx, stepwell, torch
            with stepwell.init() as run:
                with run.scope("before"): pass
                with run.scope("around"):
                    with torch.profiler.profile() as profile:
                        with run.scope("within"): pass
                with run.scope("after"): pass
            print(*nvtx.told, *{event.name for event in profile.profiler.function_events} & {"within", "before"})
            """, variables={"PYTHONPATH": f"{self.folder}:{_TORCH}", **_INJECTED})
        self.assertEqual("before / around / after / within\n", out)


@functools.cache
def _reason_to_skip() -> str:
    python = os.environ.get(_VARIABLE, "")
    if not python:
        return f"{_VARIABLE} names no interpreter; tests/run.sh --long --only readers makes one"
    done = subprocess.run([python, "-c", "import nvtx"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL)  # fmt: skip
    return "" if done.returncode == 0 else f"{python} has no nvtx"


class InjectedTest(ProductTest):
    def setUp(self):
        super().setUp()
        if _reason_to_skip():
            self.skipTest(_reason_to_skip())

    def test_an_injected_library_takes_scopes_as_ranges(self):
        words = [os.environ[_VARIABLE], "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
        packages = subprocess.run(words, stdout=subprocess.PIPE, check=True, text=True).stdout.strip()
        with tempfile.TemporaryDirectory(dir=product.folder()) as name:
            library, taken = f"{name}/libinjected.so", pathlib.Path(name) / "taken"
            subprocess.run(["gcc", "-shared", "-fPIC", "-Wall", "-Werror", "-o", library, _SOURCE], check=True)
            self.run_trial("""
                import os, threading, stepwell
                with stepwell.init() as run:
                    for index, _ in run.steps(range(2)):
                        with run.scope("train_batch"), run.scope("forward"): pass
                    def load():
                        with run.scope("load"): pass
                    thread = threading.Thread(target=load)
                    thread.start(); thread.join()
                    if os.fork() == 0:
                        with run.scope("child"): pass
                        os._exit(0)
                    os.wait()
                """, variables={"PYTHONPATH": packages, "NVTX_INJECTION64_PATH": library, "TAKEN": str(taken)})  # fmt: skip
            rows = [row.split(maxsplit=1) for row in taken.read_text().splitlines()]
        threads = list(dict.fromkeys(thread for thread, _ in rows))
        self.assertEqual(2, len(threads), rows)
        step = ["push train_batch", "push forward", "pop", "pop"]
        self.assertEqual([2 * step, ["push load", "pop"]],
                         [[what for of, what in rows if of == thread] for thread in threads])  # fmt: skip


if __name__ == "__main__":
    unittest.main()
