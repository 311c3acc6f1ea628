"""What `stepwell run` sees of an untouched script, with a torch that is made of little."""

import ast
import pathlib
import shutil
import tempfile
import textwrap
import unittest

import interrupts
import product
from product import ProductTest
from test_hooks import _FAKE, _STEP, by_run


class InterruptedHooksTest(ProductTest):
    def test_an_interrupt_at_any_line_of_hooks_and_loops_leaves_them_seeing(self):
        out, err = self.run_trial(interrupts.SOURCE + textwrap.dedent("""
            import accelerate, stepwell, torch
            from stepwell._load import core
            from stepwell.integrations.pytorch import TrainingLoop
            from stepwell.integrations._watch import watch_call, watch_model
            run = stepwell.init()
            model, optimizer, scheduler = torch.nn.Model(), torch.optim.SGD(), torch.optim.lr_scheduler.Chained()
            watched = torch.nn.Model()
            ends = [watch_model(watched, lambda *_, **__: calls.append("model"), lambda: None),
                    watch_call(watched, "forward", lambda *_, **__: calls.append("call"), lambda: None)]
            calls = []
            def step():
                model(torch.Tensor()).backward(); optimizer.step(); scheduler.step()
                watched(torch.Tensor())
            def hooked():
                for batch in torch.utils.data.DataLoader("ab"): step()
                with torch.no_grad(): list(torch.utils.data.DataLoader("x"))
            def planned():
                for index, batch in run.steps(torch.utils.data.DataLoader("ab"), epoch=0): step()
            def told():
                training = TrainingLoop(run)
                for index, batch in training.steps(torch.utils.data.DataLoader("ab")):
                    with training.train_batch: step()
                for batch in training.evaluate("x"): pass
            def ahead():
                for batch in accelerate.data_loader.DataLoaderShard(torch.utils.data.DataLoader([torch.Tensor()] * 2), "cuda"): step()
            for live in (hooked, planned, told, ahead):
                def after(line):
                    if core.is_fetching(): print(live.__name__, line, "is fetching still")
                count, swallowed = interrupt_each(live, lambda code: "/stepwell/" in code.co_filename, after)
                print(live.__name__, swallowed, count > 30)
            run.close()
            with stepwell.init(trial=run.trial + ".after") as run:
                calls.clear()
                hooked(); planned(); told()
            print(calls.count("model"), calls.count("call"))
            """), variables={"PYTHONPATH": _FAKE, "STEPWELL_EXIT_WAIT": "60"})  # fmt: skip
        self.assertEqual("".join(f"{live} [] True\n" for live in ("hooked", "planned", "told", "ahead")) + "6 6\n", out)
        self.assertNotIn("not recorded", err)
        found = self.samples(self.trial + ".after")
        steps = list(range(6))
        for name in ("step", "train_batch/forward", "train_batch/backward", "train_batch/optimizer_step"):
            wanted = [batch for batch in steps if name == "step" or batch not in (2, 3)]
            self.assertEqual(wanted, [s.batch for s in found if s.name == name], name)
        self.assertEqual([2, 3], [s.batch for s in found if s.name == "optimizer_step"], "no work is ours in loops of one's own")
        self.assertEqual(steps, sorted(s.batch for s in found if s.name.endswith("step_lr_schedulers")))
        fetches = [(s.batch, s.labels.get("loader")) for s in found if s.name == "dataloader_next" and s.batch >= 0]
        self.assertEqual([(batch, "train") for batch in steps], sorted(fetches))


class RunHooksTest(ProductTest):
    """`stepwell run` with an untouched script."""

    def setUp(self):
        scratch = tempfile.TemporaryDirectory(dir=product.folder())
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)

    def script(self, text: str, name: str = "train.py") -> str:
        (self.folder / name).write_text(text)
        return name

    def test_agent_rule_14_an_untouched_script_is_seen(self):
        script = self.script("import torch\n" + _STEP + "train(torch.utils.data.DataLoader('abc'))\nprint('done')\n")
        said = by_run(self.folder, "--trial", self.trial, product.python(), script)
        self.assertIn("done\n", said)
        self.assertIn("stepwell: 3 steps", said)
        self.assertNotIn("not seen", said)
        self.assertEqual(3, self.counts()["train_batch/backward"])

    def test_a_training_in_a_forked_child_is_seen(self):
        for name, start in (("fork", "start()"), ("thread", "one = threading.Thread(target=start); one.start(); one.join()")):
            with self.subTest(name):
                trial = f"{self.trial}.{name}"
                script = self.script("import multiprocessing, threading, torch\n" + _STEP + f"""
child = multiprocessing.get_context("fork").Process(target=train, args=(torch.utils.data.DataLoader("abc"),))
def start(): child.start(); child.join()
{start}
""")
                said = by_run(self.folder, "--trial", trial, product.python(), script)
                self.assertIn("stepwell: 3 steps", said)
                self.assertIn("stored: ", said)
                self.assertEqual({"step": 3, "dataloader_iter": 1, "dataloader_next": 4, "train_batch": 3, "train_batch/forward": 3,
                                  "train_batch/backward": 3, "train_batch/optimizer_step": 3}, self.counts(trial))  # fmt: skip

    def test_it_says_what_it_did_not_see(self):
        rows = [("no loader", "train('abc')", "not seen: a DataLoader whose batches"),
                ("no backward", "for batch in torch.utils.data.DataLoader('abc'): torch.nn.Model()(1)",
                 "not seen: backward, the optimizer's step")]  # fmt: skip
        for name, text, wanted in rows:
            with self.subTest(name):
                script = self.script("import torch\n" + _STEP + text)
                said = by_run(self.folder, "--trial", f"{self.trial}.{name[:4]}", product.python(), script)
                self.assertIn(wanted, said)

    def test_it_says_what_it_did_not_see_of_each_run(self):
        script = self.script("import stepwell, sys, torch\n" + _STEP + f"""
train(torch.utils.data.DataLoader(range(40)))
stepwell.init().close()
for number, part in enumerate(("train(torch.utils.data.DataLoader('abc'))",
                               "for batch in torch.utils.data.DataLoader('abc'): torch.nn.Model()(1)",
                               "train('abc')", "pass")):
    print("begins", number, file=sys.stderr, flush=True)
    with stepwell.init(trial={self.trial!r} + str(number)): exec(part)
""")  # fmt: skip
        said = by_run(self.folder, "--trial", self.trial, product.python(), script)
        parts = [[line for line in part.splitlines() if "not seen" in line] for part in said.split("begins ")[1:]]
        self.assertEqual([
            [],
            ["stepwell: not seen: backward, the optimizer's step"],
            ["stepwell: not seen: a DataLoader whose batches are trained on; so there are no steps"],
            ["stepwell: not seen: a DataLoader, or anything else of torch's that is hooked; run.steps(loader) and run.scope(name) "
             "say what is"],
        ], parts, said)  # fmt: skip

    def test_programs_that_train_nothing_are_left_alone(self):
        for text in ("print(1)", "import torch; print(1)", "import torch.nn\nprint(1)",
                     "import sys; print(1 if not any('share/stepwell' in p for p in sys.path) else sys.path)"):  # fmt: skip
            self.assertEqual("1\n", by_run(self.folder, product.python(), "-c", text))
        known = by_run(self.folder, product.python(), "-c", "import sys; print('torch' in sys.modules, 'stepwell' in sys.modules)")
        self.assertEqual("False False\n", known, "nothing is imported for it")
        self.assertEqual("", by_run(self.folder, product.python(), "-c", "import sys; sys.exit(3)", code=3))

    def test_agent_rule_14_a_sitecustomize_of_ones_own_is_run(self):
        self.script("import sys; print('mine', __name__, __file__.rpartition('/')[2])", "sitecustomize.py")
        path = f"{self.folder}:{_FAKE}"
        said = by_run(self.folder, product.python(), "-c", "import sitecustomize; print(sitecustomize.__file__)",
                      variables={"PYTHONPATH": path})  # fmt: skip
        self.assertEqual(f"mine sitecustomize sitecustomize.py\n{self.folder}/sitecustomize.py\n", said)
        self.script("raise RuntimeError('theirs')", "sitecustomize.py")
        said = by_run(self.folder, product.python(), "-c", "print(2)", variables={"PYTHONPATH": path})
        self.assertIn("RuntimeError: theirs", said)
        self.assertIn("2\n", said)

    def test_a_working_directory_that_is_gone_keeps_the_sitecustomize(self):
        self.script("print('mine')", "sitecustomize.py")
        source = pathlib.Path(__file__).resolve().parents[2] / "client/python/site/sitecustomize.py"
        text = f"""if True:
            import os, runpy, sys
            os.mkdir("gone"); os.chdir("gone"); os.rmdir("../gone")
            sys.path[:0] = ["", {str(self.folder)!r}]
            runpy.run_path({str(source)!r})
            print(sys.path[0] == "")
            """  # newer Pythons do not begin there with a path of that kind, older ones do
        out, err = self.run_trial(f"import os; os.chdir({str(self.folder)!r})\nexec({text!r})")
        self.assertEqual("mine\nTrue\n", out, err)

    def test_a_python_that_knows_no_specs_is_left_alone(self):
        source = pathlib.Path(__file__).resolve().parents[2] / "client/python"
        ours = self.folder / "ours"
        ours.mkdir()
        shutil.copy(source / "site/sitecustomize.py", ours)
        shutil.copy(source / "stepwell/hooks/_watch.py", ours / "stepwell_watch.py")
        self.script("print('mine', __name__)", "sitecustomize.py")
        for version, watch_count in (("(2, 7, 18, 'final', 0)", 0), ("(3, 3, 7, 'final', 0)", 0), ("sys.version_info", 1)):
            out, err = self.run_trial(f"""
                import sys, types
                # As imp was, which newer ones do without.
                imp = sys.modules["imp"] = types.ModuleType("imp")
                imp.find_module = lambda name, path: (open(path[0] + "/" + name + ".py"), path[0], None)
                def load_module(name, file, path, kind): exec(file.read(), vars(sys.modules.setdefault(name, types.ModuleType(name))))
                imp.load_module = load_module
                before = len(sys.meta_path)
                sys.path[:0] = [{str(ours)!r}, {str(self.folder)!r}]
                known, sys.version_info = sys.version_info, {version}
                import sitecustomize
                sys.version_info = known
                print(len(sys.meta_path) - before, {str(ours)!r} in sys.path)
                """, options=("-S",))  # fmt: skip
            self.assertEqual(f"mine sitecustomize\n{watch_count} False\n", out, err)

    def test_what_any_python_reads_is_read_by_the_oldest(self):
        text = (pathlib.Path(__file__).resolve().parents[2] / "client/python/site/sitecustomize.py").read_bytes()
        newer = (ast.JoinedStr, ast.AnnAssign, ast.Nonlocal, ast.YieldFrom, ast.Starred, ast.NamedExpr, ast.AsyncFunctionDef,
                 ast.Await, ast.MatMult)  # fmt: skip
        for node in ast.walk(ast.parse(text.decode("ascii"))):
            self.assertNotIsInstance(node, newer, getattr(node, "lineno", ""))
            if isinstance(node, ast.FunctionDef):
                arguments = node.args
                said = [arguments.kwonlyargs, arguments.posonlyargs, node.returns, *(one.annotation for one in arguments.args)]
                self.assertFalse(any(said), node.name)
            if isinstance(node, ast.Raise):
                self.assertIsNone(node.cause, node.lineno)
            if isinstance(node, ast.ClassDef):
                self.assertFalse(node.keywords, node.name)
            if isinstance(node, ast.Call):  # print(..., file=) would be a statement's error there
                self.assertNotEqual("print", getattr(node.func, "id", ""), node.lineno)

    def test_without_the_package_one_line_says_so(self):
        script = self.script("import torch; import torch.nn; print(torch.nn.Model()(1))")
        said = by_run(self.folder, "python3", "-s", script, variables={"PATH": "/usr/bin:/bin"})
        self.assertIn("1\n", said)
        self.assertEqual(1, said.count("nothing of this training is seen: "), said)

    def test_agent_rule_14_interpreters_that_look_at_nothing_are_named(self):
        said = by_run(self.folder, product.python(), "-I", "-c", "print(1)")
        self.assertIn("-I looks at no sitecustomize", said)
        said = by_run(self.folder, "--no-hooks", product.python(), "-I", "-c", "print(1)")
        self.assertEqual("1\n", said)
        script = self.script("import torch\n" + _STEP + "train(torch.utils.data.DataLoader('abc'))\n")
        self.assertEqual("", by_run(self.folder, "--no-hooks", product.python(), script))

    def test_the_rank_is_the_one_that_the_training_knows(self):
        script = self.script("import torch\ntorch.distributed.init(1)\n" + _STEP
                             + "train(torch.utils.data.DataLoader('abc'))\n")  # fmt: skip
        by_run(self.folder, "--trial", self.trial, product.python(), script)
        self.assertEqual({"1"}, {sample.labels["rank"] for sample in self.samples()})

    def test_two_lines_ask_torch_for_a_rank_that_nobody_else_says(self):
        for name, told, options, variables, wanted in (
            ("torch", "torch.distributed.init(1)", "", {}, "1"),
            ("torch, unhooked", "torch.distributed.init(1)", "hooks=False", {}, "1"),
            ("nobody", "", "", {}, "0"),
            ("the argument", "torch.distributed.init(1)", "rank=0", {}, "0"),
            ("the launcher", "torch.distributed.init(1)", "", {"RANK": "2", "WORLD_SIZE": "3"}, "2"),
            ("torch in a batch script", "torch.distributed.init(1)", "", {"SLURM_PROCID": "0", "SLURM_NTASKS": "1"}, "1"),
            ("torch beside both", "torch.distributed.init(1)", "", {"SLURM_PROCID": "0", "RANK": "2", "WORLD_SIZE": "3"}, "2"),
            ("SLURM", "", "", {"SLURM_PROCID": "2", "SLURM_NTASKS": "3"}, "2"),
            ("a torch that cannot", "torch.distributed.is_initialized = None", "", {}, "0"),
            ("no torch", "del sys.modules['torch.distributed']", "", {}, "0"),
        ):
            with self.subTest(name):
                trial = f"{self.trial}.{name.replace(' ', '')}"
                _, err = self.run_trial(f"""
                    import sys, stepwell, torch
                    {told}
                    before = set(sys.modules)
                    with stepwell.init({options}) as run: run.record("value", 1)
                    assert not {{name for name in set(sys.modules) - before if name.startswith("torch")}}
                    """, variables={"PYTHONPATH": _FAKE, "STEPWELL_TRIAL": trial, **variables})  # fmt: skip
                self.assertEqual([wanted], [sample.labels["rank"] for sample in self.samples(trial)])
                self.assertEqual(wanted == "0", "stored: " in err, "rank 0 alone speaks")


if __name__ == "__main__":
    unittest.main()
