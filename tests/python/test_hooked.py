"""That what hooks are put over goes on as it was, with a torch that is made of little."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import product
from test_hooks import _FAKE, _HERE, HookedTrial


class HookedTest(HookedTrial):
    def test_keywords_of_any_name_are_the_originals(self):
        out, _ = self.run_hooked("""
            import stepwell, torch
            from stepwell.integrations._watch import watch_call, watch_model, watch_result
            run = stepwell.init()
            names = ["args", "begin", "function", "handler", "keywords", "kind", "made", "name", "original", "tensor"]
            given = dict.fromkeys(names, 1)
            class Wide(torch.nn.Module):
                def forward(*args, **keywords): return sorted(keywords)
                def other(*args, **keywords): return sorted(keywords)
            models = [Wide(), Wide()]
            watch_model(models[1], lambda *_, **__: None, lambda: None)
            watch_call(models[1], "other", lambda *_, **__: None, lambda: None)
            watch_result(models[0], "other", lambda _: None)
            class Optimizer(torch.optim.SGD):
                def __init__(self, **keywords): super().__init__(); self.given = sorted(keywords)
            for batch in torch.utils.data.DataLoader("ab"):     # with a handler of Python's, and in C
                for model in models:
                    print(model(**given) == names, model.other(**given, self=1) == sorted([*names, "self"]), end=" ")
                print(Optimizer(**given).given == names)
                for call in (torch.distributed.all_reduce, torch.optim.lr_scheduler.LRScheduler().step, torch.save,
                             torch.Tensor("cuda").cpu):
                    for name in names:
                        try: call(**{name: 1})
                        except TypeError as error:
                            if call.__name__ not in str(error): print(error)
            """)
        self.assertEqual("True True True True True\n" * 2, out)

    def test_what_is_hooked_is_pickled_by_a_name_that_has_it(self):
        """Some lie where they are hooked under another name than they say of themselves."""
        write = """
            import pickle, stepwell, torch
            run = stepwell.init()
            from stepwell import hooks
            for hook in hooks._torch_hooks.hooks:
                for owner, name, original, put, _ in hook._replaced:
                    there = getattr(owner, name)
                    for protocol in range(2, 6):
                        loaded = pickle.loads(pickle.dumps(there, protocol))
                        if loaded != there: print(there, loaded)
                    print(pickle.dumps(there).hex(), end=" ")
            """
        out, _ = self.run_hooked(write)
        self.assertNotIn("<", out)
        read = "import pickle, sys, torch; print(*(pickle.loads(bytes.fromhex(it)).__name__ for it in sys.argv[1:]))"
        alone = {key: value for key, value in os.environ.items() if not key.startswith(("STEPWELL_", "PYTHON"))}
        for variables in (alone, {**alone, "STEPWELL_HOOKS": "0"}):
            done = subprocess.run([sys.executable, "-s", "-c", read, *out.split()], stdout=subprocess.PIPE, text=True,
                                  env={**variables, "PYTHONPATH": _FAKE}, check=True)  # fmt: skip
            self.assertEqual({"__iter__", "__next__", "_call_impl", "backward", "step", "to", "cuda", "cpu", "item", "tolist",
                              "pin_memory", "save", "load", "all_reduce"}, set(done.stdout.split()))  # fmt: skip

    def test_what_is_hooked_may_be_referred_to_weakly(self):
        out, _ = self.run_hooked("""
            import gc, weakref, stepwell, torch
            kept = weakref.WeakKeyDictionary({torch.save: 1})
            run = stepwell.init()
            print(weakref.ref(torch.save)() is torch.save, kept.get(torch.save))
            from stepwell._load import core
            gone = core.Hooked(print, print)
            reference = weakref.ref(gone)
            del gone
            gc.collect()
            print(reference())
            """)
        self.assertEqual("True 1\nNone\n", out)

    def test_stderr_that_cannot_be_written_ends_no_import(self):
        """What `stepwell run` puts before a program, where the package is missing, fails, or has something to say."""
        scratch = tempfile.TemporaryDirectory(dir=product.folder())
        self.addCleanup(scratch.cleanup)
        site = pathlib.Path(scratch.name, "site")
        site.mkdir()
        package = _HERE.parents[1] / "client/python"
        (site / "sitecustomize.py").write_text((package / "site/sitecustomize.py").read_text())
        (site / "stepwell_watch.py").write_text((package / "stepwell/hooks/_watch.py").read_text())
        broken = pathlib.Path(scratch.name, "broken/stepwell")
        broken.mkdir(parents=True)
        (broken / "__init__.py").write_text("")
        (broken / "hooks.py").write_text("def begin_with_torch(): raise OSError('ours')")
        alone = {key: value for key, value in os.environ.items() if not key.startswith(("STEPWELL_", "PYTHON"))}
        for what, stderr in (("2>&-", ""), ("2>/dev/full", ""), ("", "nothing of ")):
            for path in (f"{site}:{_FAKE}", f"{site}:{broken.parent}:{_FAKE}"):
                with self.subTest(stderr=what, path=path):
                    words = f'exec "$1" -s -c "import torch; print(torch.Tensor().item())" {what}'
                    done = subprocess.run(["bash", "-c", words, "bash", sys.executable], text=True, stdout=subprocess.PIPE,
                                          stderr=subprocess.PIPE, env={**alone, "PYTHONPATH": path})  # fmt: skip
                    self.assertEqual((0, "0.5\n"), (done.returncode, done.stdout), done.stderr)
                    self.assertIn(stderr, done.stderr)

    def test_an_exception_that_cannot_be_told_is_none_of_the_trainings(self):
        out, err = self.run_hooked("""
            import stepwell, torch
            stepwell.init()
            torch.cuda.is_there = True
            class Untold(Exception):
                def __str__(self): raise RuntimeError("untold")
            def broken(*_): raise Untold
            torch.cuda.Event.record = torch.cuda.memory_stats = broken
            from stepwell.integrations._watch import watch_call
            class Owner:
                def call(self): return "called"
            owner = Owner()
            watch_call(owner, "call", broken, broken)
            for batch in torch.utils.data.DataLoader("ab"):
                print(torch.nn.Model()(batch), owner.call(), end=" ")
            """)
        self.assertEqual("a called b called ", out, err)
        self.assertIn("the GPU's time is not recorded any more: Untold", err)
        self.assertIn("is not recorded: Untold", err)
        self.assertNotIn("Traceback", err)

    def test_tensors_of_a_kind_of_ones_own_are_asked_for_nothing(self):
        out, err = self.run_hooked("""
            import stepwell, torch
            stepwell.init()
            class Mine(torch.Tensor):
                @property
                def is_cpu(self): print("asked", end=" "); return False
            for batch in torch.utils.data.DataLoader("ab"):
                for tensor in (Mine(), torch.nn.Parameter("cuda")):
                    print(tensor.item(), tensor.tolist(), tensor.to("cpu").device, tensor.to(torch.Tensor()).device.is_cpu)
                    tensor.cpu(); tensor.cuda()
            torch.Tensor().to(Mine())
            """)
        self.assertEqual("0.5 [0.5] cpu True\n" * 4, out)
        self.assertEqual([0, 1], [s.batch for s in self.samples() if s.name == "from_device"], "of the parameters'")

    def test_without_stderr_nothing_is_said_on_stdout(self):
        out, _ = self.run_hooked("""
            import sys
            sys.stderr = None
            import stepwell, torch
            run = stepwell.init()
            for batch in torch.utils.data.DataLoader("ab"): pass
            run.close()
            """)
        self.assertEqual("", out)

    def test_an_interrupt_while_a_run_is_opened_at_the_first_sign_leaves_a_process_that_sees(self):
        out, err = self.run_hooked("""
            import torch
            from stepwell import _run, hooks
            hooks.begin_with_torch()
            original = _run.core.open
            def interrupted(*_):
                _run.core.open = original
                raise KeyboardInterrupt
            _run.core.open = interrupted
            for attempt in range(2):
                try:
                    for batch in torch.utils.data.DataLoader("abc"): torch.nn.Model()(torch.Tensor()).backward()
                except KeyboardInterrupt: print("interrupted", end=" ")
            """)
        self.assertEqual("interrupted ", out)
        self.assertEqual(3, self.counts().get("step"), err)

    def test_a_run_that_wants_no_hooks_has_none_though_they_were_put_in(self):
        for order in ("import torch\nhooks.begin_with_torch()\nrun = stepwell.init(hooks=False)",
                      "run = stepwell.init(hooks=False)\nimport torch\nhooks.begin_with_torch()"):  # fmt: skip
            out, err = self.run_hooked("import stepwell\nfrom stepwell import hooks\n" + order + """
print(type(torch.autograd.backward).__name__, type(torch.nn.Module.__call__).__name__, "to" in vars(torch.Tensor))
class Mine(torch.optim.SGD):
    def step(self): return 1
for batch in torch.utils.data.DataLoader("ab"): torch.nn.Model()(torch.Tensor()).backward(); Mine().step()
run.record("end", 1)
""")
            self.assertEqual("function function False\n", out)
            self.assertNotIn("not seen", err)
            self.assertEqual({"end"}, set(self.counts()))

    def test_who_asks_for_the_open_run_without_hooks_takes_none_from_it(self):
        self.run_hooked("""
            import stepwell, torch
            run = stepwell.init()
            for at, batch in enumerate(torch.utils.data.DataLoader("abc")):
                if at == 1: assert stepwell.init(hooks=False) is run
                torch.nn.Model()(torch.Tensor()).backward()
            """)
        self.assertEqual((3, 3), (self.counts().get("step"), self.counts().get("train_batch/backward")))

    def test_a_run_that_is_disabled_says_nothing_of_its_schedule(self):
        _, err = self.run_hooked("""
            import stepwell
            run = stepwell.init(schedule=stepwell.schedule(active=1))
            for _ in run.steps("ab"): pass
            """, variables={"STEPWELL_DISABLED": "1"})  # fmt: skip
        self.assertEqual("", err)

    def test_an_integration_leaves_the_hooks_that_were_put_in(self):
        out, _ = self.run_hooked("""
            import torch
            from stepwell import hooks
            from stepwell.integrations.pytorch import TrainingLoop
            hooks.begin_with_torch()
            for index, batch in TrainingLoop().steps(torch.utils.data.DataLoader("ab")):
                torch.nn.Model()(torch.Tensor()).backward()
            print(type(torch.autograd.backward).__name__)
            """)
        self.assertEqual("Hooked\n", out)
        self.assertEqual(2, self.counts().get("backward"))

    def test_what_a_run_cannot_see_is_said_at_its_end(self):
        loop = """
            import stepwell, torch
            if {is_late}:
                optimizer = torch.optim.SGD(); scheduler = torch.optim.lr_scheduler.LRScheduler(optimizer)
            run = stepwell.init({options})
            if not {is_late}:
                optimizer = torch.optim.SGD(); scheduler = torch.optim.lr_scheduler.LRScheduler(optimizer)
            for batch in torch.utils.data.DataLoader("ab"):
                torch.nn.Model()(torch.Tensor()).backward(); optimizer.step(); scheduler.step()
            """
        for is_late, options, wanted in ((True, "", "the optimizer's step, for its LR scheduler was made before"),
                                         (False, "", ""), (False, "schedule=stepwell.schedule(skip_first=9, active=1)",
                                                           "no window of the schedule came")):  # fmt: skip
            with self.subTest(wanted):
                _, err = self.run_hooked(loop.format(is_late=is_late, options=options),
                                         variables={"STEPWELL_TRIAL": f"{self.trial}.{wanted[:9]}"})  # fmt: skip
                self.assertIn(wanted or "2 steps", err)
                self.assertEqual(bool(wanted), "not seen" in err or "no window" in err, err)


if __name__ == "__main__":
    unittest.main()
