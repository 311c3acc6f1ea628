"""What is seen of a training without a line in it, with a torch that is made of little."""

from __future__ import annotations

import os
import pathlib
import subprocess
import tempfile
import textwrap
import unittest

import product
from product import ProductTest

_HERE = pathlib.Path(__file__).resolve().parent
_FAKE = str(_HERE / "fake_torch")
_STEP = """
def train(batches, optimizer=torch.optim.SGD(), model=torch.nn.Model()):
    for batch in batches:
        model(torch.Tensor()).backward()
        optimizer.step()
"""


def by_run(folder: pathlib.Path, *words: str, variables: dict[str, str] | None = None, code: int = 0) -> str:
    """`stepwell run` and these words; what they said on stderr, and on stdout before that."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("STEPWELL_", "PYTHON"))}
    environment.update({"STEPWELL_SERVER": product.server(), "STEPWELL_SPOOL_DIR": os.environ["PRODUCT_SPOOL"],
                        "STEPWELL_AGENT": product.program(), "STEPWELL_EXIT_WAIT": "60", "STEPWELL_SYSTEM_METRICS": "0",
                        "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": _FAKE, **(variables or {})})  # fmt: skip
    done = subprocess.run([product.program(), "run", *words], env=environment, cwd=folder, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=2 * product.WAIT_S)  # fmt: skip
    if done.returncode != code:
        raise AssertionError(f"exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


class HookedTrial(ProductTest):
    def run_hooked(self, source: str, **more) -> tuple[str, str]:
        variables = {"PYTHONPATH": _FAKE, **more.pop("variables", {})}
        return self.run_trial(source, variables=variables, **more)


class HooksTest(HookedTrial):
    def test_agent_rule_13_two_lines_see_a_training(self):
        out, err = self.run_hooked("""
            import stepwell
            stepwell.init()
            import torch
            """ + _STEP.replace("\n", "\n            ") + """
            for epoch in range(2): train(torch.utils.data.DataLoader("abc"))
            """)  # fmt: skip
        found = self.samples()
        self.assertEqual({"step": 6, "dataloader_iter": 2, "dataloader_next": 8, "train_batch": 6, "train_batch/forward": 6,
                          "train_batch/backward": 6, "train_batch/optimizer_step": 6}, self.counts())  # fmt: skip
        self.assertEqual(list(range(6)), [sample.batch for sample in found if sample.name == "step"])
        self.assertIn("stepwell: 6 steps", err)
        self.assertNotIn("not seen", err)

    def test_each_timing_has_its_place(self):
        self.run_hooked("""
            import stepwell, torch
            run = stepwell.init()
            model, optimizer, scheduler = torch.nn.Model(), torch.optim.SGD(), torch.optim.lr_scheduler.Chained()
            torch.Tensor().to("cuda")
            for batch in torch.utils.data.DataLoader("ab"):
                batch = torch.Tensor().to("cuda"); batch.to(dtype="float16"); torch.Tensor().to("cpu")
                torch.Tensor().cuda(); torch.Tensor().pin_memory()
                loss = model(batch); loss.backward()
                optimizer.step(); scheduler.step()
                loss = torch.Tensor("cuda"); loss.item(); loss.cpu(); torch.Tensor().item()
                torch.distributed.all_reduce(loss)
                torch.save(model, "x")
            """)
        self.assertEqual({"step": 2, "dataloader_iter": 1, "dataloader_next": 3, "to_device": 2, "to_device.count": 2, "pin_memory": 2,
                          "train_batch": 2, "train_batch/forward": 2, "train_batch/backward": 2,
                          "train_batch/optimizer_step": 2, "step_lr_schedulers": 2, "from_device": 2,
                          "from_device.count": 2, "reduce_metrics": 2, "save_checkpoint": 2}, self.counts())  # fmt: skip

    def test_checkpoints_of_other_libraries_are_seen_whenever_these_are_imported(self):
        for name, before, after in (("imported before", "import safetensors.torch, torch.distributed.checkpoint", ""),
                                    ("imported after", "", "import safetensors.torch, torch.distributed.checkpoint")):  # fmt: skip
            with self.subTest(name):
                trial = f"{self.trial}.{name[-6:]}"
                out, err = self.run_hooked(f"""
                    import pickle, stepwell, torch
                    {before}
                    stepwell.init()
                    {after}
                    from safetensors.torch import load_file, load_model, save_file, save_model
                    model = torch.nn.Module()
                    save_file({{}}, "x"); save_model(model, "x")
                    torch.distributed.checkpoint.save(None, "x"); torch.save(None, "x")
                    load_file("x"); load_model(model, "x"); torch.distributed.checkpoint.load(None, "x")
                    print(pickle.loads(pickle.dumps(save_file)) is save_file)
                    stepwell.init().close()
                    stepwell.init(hooks=False, trial="{trial}.unhooked").close()
                    print(type(torch.distributed.checkpoint.save).__name__, type(save_file.__wrapped__).__name__)
                    """, variables={"STEPWELL_TRIAL": trial})  # fmt: skip
                self.assertEqual("True\nfunction function\n", out, err)
                self.assertEqual({"save_checkpoint": 4, "load_checkpoint": 3}, self.counts(trial))

    def test_accumulated_gradients_keep_true_batches_and_scopes_of_the_program_win(self):
        self.run_hooked("""
            import stepwell, torch
            run = stepwell.init()
            model, optimizer = torch.nn.Model(), torch.optim.SGD()
            for index, batch in enumerate(torch.utils.data.DataLoader("abcd")):
                if index < 2:
                    model(torch.Tensor()).backward()
                    if index % 2: optimizer.step()
                else:
                    with run.scope("mine"): model(torch.Tensor()).backward()
            """)
        found = self.samples()
        batches = {name: [s.batch for s in found if s.name == name] for name in {s.name for s in found}}
        self.assertEqual([0, 1, 2, 3], batches["step"])
        self.assertEqual([0, 1], batches["train_batch"], "the first one's ends with its step")
        self.assertEqual([1], batches["train_batch/optimizer_step"])
        self.assertEqual([2, 3], batches["mine/forward"])
        self.assertEqual([2, 3], batches["mine/backward"])

    def test_an_evaluation_is_no_batch(self):
        self.run_hooked("""
            import stepwell, torch
            stepwell.init()
            model = torch.nn.Model()
            for epoch in range(2):
                for batch in torch.utils.data.DataLoader("ab", persists=True):
                    model(torch.Tensor()).backward()
                    if batch == "a":
                        with torch.no_grad(): [model(torch.Tensor()) for _ in torch.utils.data.DataLoader("xy")]
                with torch.no_grad(): [model(torch.Tensor()) for _ in torch.utils.data.DataLoader("xy")]
            """)
        found = self.samples()
        self.assertEqual([0, 1, 2, 3], [s.batch for s in found if s.name == "step"])
        fetches = [s for s in found if s.name == "dataloader_next" and s.labels.get("loader") == "eval"]
        self.assertEqual([-1] * 4 + [0, 0, 2, 2], sorted(s.batch for s in fetches))
        self.assertEqual({"seconds"}, {s.unit for s in found if s.name == "dataloader_next"}, "one unit, to be compared")
        self.assertEqual(4, sum(s.name == "train_batch/backward" for s in found))

    def test_loops_end_as_people_end_them(self):
        out, err = self.run_hooked("""
            import stepwell, torch
            run = stepwell.init()
            kept = torch.utils.data.DataLoader("abc", persists=True)
            for epoch in range(2):
                for batch in kept: torch.nn.Model()(1)
            for batch in torch.utils.data.DataLoader("abc"):
                torch.nn.Model()(1)
                if batch == "b": break
            torch.nn.Model()(1)
            loader = iter(torch.utils.data.DataLoader(["a", OSError("bad"), "c"]))
            for _ in range(4):
                try: print(next(loader), end=" ")
                except (OSError, StopIteration) as error: print(repr(error), end=" ")
            for index, batch in run.steps(torch.utils.data.DataLoader("xyz")): pass
            """)
        self.assertEqual("a OSError('bad') c StopIteration() ", out)
        found = self.samples()
        steps = [s.batch for s in found if s.name == "step"]
        self.assertEqual([0, 1, 2, 3, 4, 5, 6, 8, 9, 10, 11, 12], steps, "7 was left midway")
        # Each step has one fetch: run.steps times its own.
        self.assertEqual([], [s.name for s in found if s.name.endswith(".count")])
        self.assertNotIn("dataloader_next/dataloader_next", {s.name for s in found})
        self.assertEqual([-1], [s.batch for s in found if s.name == "forward"], "after the loop: outside any step")

    def test_an_iterator_that_is_kept_hides_no_training(self):
        rows = (
            # One batch was looked at; then epochs over the same loader.
            ("same", """
                loader = torch.utils.data.DataLoader("abc")
                kept = iter(loader); next(kept)
                for epoch in range(2): train(loader)
                """, 6, False),
            # Over another one, which is told by eight optimizer's steps without an ask of the first.
            ("other", """
                kept = iter(torch.utils.data.DataLoader("xyz")); next(kept)
                for epoch in range(2): train(torch.utils.data.DataLoader(range(20)))
                """, 32, True),
            ("in turns", """
                first, second = (iter(torch.utils.data.DataLoader(range(20))) for _ in range(2))
                for item in first: train([next(second)])
                """, 20, True),
            # Each task's batches lie in its step, but for those that passed for a training.
            ("in each other", """
                for task in torch.utils.data.DataLoader("abcd"): train(torch.utils.data.DataLoader(range(12)))
                """, 4 + 3, True),
        )  # fmt: skip
        for name, loop, step_count, has_inner in rows:
            with self.subTest(name):
                trial = f"{self.trial}.{name}"
                self.run_hooked("import stepwell, torch\nstepwell.init()" + _STEP + textwrap.dedent(loop),
                                variables={"STEPWELL_TRIAL": trial})  # fmt: skip
                found = self.samples(trial)
                self.assertEqual(list(range(step_count)), [s.batch for s in found if s.name == "step"])
                fetches = [s for s in found if s.name == "dataloader_next"]
                labelled = [s.batch for s in fetches if s.labels.get("loader") == "train" and s.batch >= 0]
                self.assertEqual(list(range(step_count)), labelled)
                self.assertEqual(has_inner, any(not s.labels.get("loader") for s in fetches))

    def test_what_a_fetch_calls_is_a_part_of_it(self):
        self.run_hooked("""
            import stepwell, torch
            run = stepwell.init()
            transform = torch.nn.Model()
            def items(count):
                for i in range(count):
                    transform(torch.Tensor()); torch.load("x"); torch.optim.SGD().step()
                    yield i
            for batch in torch.utils.data.DataLoader(items(3)): transform(torch.Tensor()).backward()
            for index, batch in run.steps(items(2)): pass
            """)
        self.assertEqual({"step": 5, "dataloader_iter": 1, "dataloader_next": 7, "train_batch": 3, "train_batch/forward": 3,
                          "train_batch/backward": 3}, self.counts())  # fmt: skip

    def test_what_a_loaders_worker_calls_is_a_part_of_a_fetch(self):
        self.run_hooked("""
            import multiprocessing, stepwell, torch
            run = stepwell.init()
            transform = torch.nn.Model()
            def work(is_worker):
                torch.utils.data.dataloader.worker_info = is_worker or None
                for _ in range(2): transform(torch.Tensor()); torch.load("x")
                with torch.no_grad(): list(torch.utils.data.DataLoader("xy"))
                run.record("worked", 1)
            for is_worker in (True, False):
                child = multiprocessing.get_context("fork").Process(target=work, args=(is_worker,))
                child.start(); child.join()
            """)
        # Of the two one is a worker.
        self.await_counts({"worked": 2, "forward": 2, "load_checkpoint": 2, "dataloader_iter": 1, "dataloader_next": 2})

    def test_what_says_the_same_as_a_hook_is_timed_once(self):
        self.run_hooked("""
            import stepwell, torch
            from stepwell.integrations.pytorch import TrainingLoop
            run = stepwell.init()
            training, model, optimizer = TrainingLoop(run), torch.nn.Model(), torch.optim.SGD()
            scheduler = torch.optim.lr_scheduler.LRScheduler()
            for index, batch in training.steps(torch.utils.data.DataLoader("ab")):
                with training.to_device: torch.Tensor().to("cuda")
                with training.train_batch:
                    with training.forward: loss = model(torch.Tensor())
                    with training.backward: loss.backward()
                    with training.optimizer_step: optimizer.step()
                    model(torch.Tensor())
                with training.step_lr_schedulers: scheduler.step()
            """)
        self.assertEqual({"step": 2, "dataloader_next": 2, "to_device": 2, "train_batch": 2, "train_batch/forward": 2,
                          "train_batch/forward.count": 2, "train_batch/backward": 2, "train_batch/optimizer_step": 2,
                          "step_lr_schedulers": 2}, self.counts())  # fmt: skip

    def test_a_loop_whose_iterator_persists_is_over_where_it_is_left(self):
        self.run_hooked("""
            import stepwell, torch
            stepwell.init()
            loader = torch.utils.data.DataLoader("abc", persists=True)
            for epoch in range(2):
                for batch in loader:
                    if epoch == 0 and batch == "b": break
            """)
        self.assertEqual([0, 2, 3, 4], [s.batch for s in self.samples() if s.name == "step"], "1 was left midway")

    def test_more_classes_than_there_are_hooks_are_hooked(self):
        _, err = self.run_hooked("""
            import stepwell, torch
            stepwell.init()
            kinds = [type(f"Optimizer{i}", (torch.optim.SGD,), {"step": lambda self: super(type(self), self).step()})
                     for i in range(100)]
            for kind in kinds: kind().step()
            """)
        self.assertNotIn("is not recorded any more", err)
        self.assertEqual({"optimizer_step": 100}, self.counts())

    def test_the_allocator_tells_current_and_peak_of_its_gpu_once_a_second(self):
        self.run_hooked("""
            import stepwell, torch
            from stepwell.hooks import _allocator
            class time:
                now_s = 100.0
                def monotonic(): return time.now_s
            _allocator.time = time
            stepwell.init(rank=3, world_size=4)
            torch.cuda.is_there = True
            torch.cuda.device = 1
            for batch in torch.utils.data.DataLoader("abcd"):
                if batch == "b": time.now_s, torch.cuda.used = 100.875, 2   # less than a second
                if batch == "c": time.now_s, torch.cuda.used = 101.0, 3
            """)
        found: dict[int, dict[str, tuple[float, str]]] = {}
        for sample in self.samples():
            if sample.group == "torch":
                self.assertEqual(("1", "3"), (sample.labels.get("cuda_device"), sample.labels.get("rank")), sample.labels)
                found.setdefault(sample.batch, {})[sample.name] = (sample.value, sample.unit)

        def counters(used: int) -> "dict[str, tuple[float, str]]":
            return {"cuda_allocated": (1 * used, "bytes"), "cuda_allocated_peak": (10 * used, "bytes"),
                    "cuda_active": (2 * used, "bytes"), "cuda_active_peak": (20 * used, "bytes"),
                    "cuda_reserved": (3 * used, "bytes"), "cuda_reserved_peak": (30 * used, "bytes"),
                    "cuda_inactive": (4 * used, "bytes"), "cuda_inactive_peak": (40 * used, "bytes"),
                    "cuda_alloc_retries": (5 * used, "1")}  # fmt: skip

        self.assertEqual({0: counters(1), 3: counters(3)}, found)

    def test_a_hook_that_fails_is_off_and_says_so_once(self):
        out, err = self.run_hooked("""
            import stepwell, torch
            stepwell.init()
            torch.cuda.is_there = True
            def broken(*_): raise ZeroDivisionError("broken")
            torch.cuda.Event.record = broken
            torch.cuda.memory_stats = broken
            for batch in torch.utils.data.DataLoader("abc"):
                torch.nn.Model()(torch.Tensor()).backward()
            for batch in torch.utils.data.DataLoader("abc"):
                torch.is_grad_enabled.__code__ = broken.__code__  # whoever kept it has it so
                print(batch, torch.nn.Model()(7), torch.autograd.backward("x"), end=" ")
            print(type(torch.nn.Module.__call__).__name__, type(torch.autograd.backward).__name__)
            """)
        self.assertEqual("a 7 None b 7 None c 7 None function function\n", out, "what was there is there again")
        for what in ("the GPU's time", "torch's allocator", "the DataLoader", "forward", "backward"):
            self.assertEqual(1, err.count(f"stepwell: {what} is not recorded any more: "), err)
        self.assertIn("ZeroDivisionError: broken", err)
        self.assertNotIn("Traceback", err)
        self.assertEqual(3, self.counts()["step"])

    def test_a_compiler_that_was_there_before_keeps_its_modules(self):
        out, err = self.run_hooked("""
            import sys, torch
            sys.modules["torch._dynamo"] = torch
            import stepwell
            stepwell.init()
            print(type(torch.nn.Module.__call__).__name__, type(torch.autograd.backward).__name__)
            """)
        self.assertEqual("function Hooked\n", out)
        self.assertNotIn("not seen: forward", err, "nothing ran that it was missed in")
        source = """
            import sys, torch
            sys.modules["torch._dynamo"] = torch
            import stepwell
            run = stepwell.init()
            for batch in torch.utils.data.DataLoader("ab"):
                with run.scope(%r): loss = torch.nn.Model()(torch.Tensor())
                loss.backward()
            """
        _, err = self.run_hooked(source % "mine", variables={"STEPWELL_TRIAL": f"{self.trial}.missed"})
        self.assertEqual(1, err.count("not seen: forward, for torch's compiler was imported before stepwell.init()"), err)
        _, err = self.run_hooked(source % "forward", variables={"STEPWELL_TRIAL": f"{self.trial}.timed"})
        self.assertNotIn("not seen", err, "it times that itself")

    def test_what_is_hooked_is_as_it_was(self):
        out, _ = self.run_hooked("""
            import copy, functools, inspect, pickle, torch
            before = torch.nn.Module.__call__, torch.autograd.backward, torch.Tensor.to
            import stepwell
            run = stepwell.init()
            after = torch.nn.Module.__call__, torch.autograd.backward, torch.Tensor.to
            print([a == b and hash(a) == hash(b) and {b: 1}[a] == 1 for a, b in zip(after, before)])
            print(after[0].__name__, after[0].__doc__, after[0].__qualname__, after[0].__wrapped__ is before[0])
            print(inspect.signature(torch.autograd.backward), repr(torch.save) == repr(torch.save.__wrapped__))
            print(pickle.loads(pickle.dumps(torch.autograd.backward)) is torch.autograd.backward)
            print(copy.copy(torch.save) is torch.save, functools.wraps(torch.save)(lambda: 1).__name__ == 'save')
            try: torch.autograd.backward(None)
            except RuntimeError as error: print(error)
            try: torch.save()
            except TypeError as error: print(error)
            class Deep(torch.nn.Module):
                def forward(self, depth): return depth and self(depth - 1)
            print(Deep()(50), Deep()(depth=3), torch.nn.Model()(batch=3))
            many = torch.nn.Module.__call__
            class Wide(torch.nn.Module):
                def forward(self, *args, **keywords): return len(args), len(keywords)
            print(Wide()(*range(40)), Wide()(**{str(i): i for i in range(40)}), Wide()(1, a=2))
            run.off()
            print(Wide()(1), torch.nn.Model()(2))
            """)
        self.assertEqual("""[True, True, True]
_call_impl Calls forward. Module._call_impl True
(tensors) True
True
True True
does not require grad
save() missing 2 required positional arguments: 'what' and 'path'
0 0 3
(40, 0) (0, 40) (1, 1)
(1, 0) 2
""", out)

    def test_hooks_are_not_put_in_where_nobody_wants_them(self):
        for variables, option in (({"STEPWELL_HOOKS": "0"}, ""), ({}, "hooks=False")):
            out, _ = self.run_hooked(f"""
                import stepwell, torch
                run = stepwell.init(trial={self.trial!r}, {option})
                print(type(torch.autograd.backward).__name__)
                """, variables=variables)  # fmt: skip
            self.assertEqual("function\n", out)

    def test_methods_of_c_are_pickled_as_they_were(self):
        out, _ = self.run_hooked("""
            import copy, pickle, torch
            torch.Tensor.item = int.bit_length       # as torch's: of C
            import stepwell
            run = stepwell.init()
            item = torch.Tensor.item
            print(type(item).__name__, [pickle.loads(pickle.dumps(item, p)) == item for p in (2, 3, 4, 5)])
            print(copy.copy(item) == copy.deepcopy(item) == item)
            """)
        self.assertEqual("Hooked [True, True, True, True]\nTrue\n", out)

    def test_other_threads_than_the_main_one_are_left_alone(self):
        self.run_hooked("""
            import threading, stepwell, torch
            run = stepwell.init()
            model, optimizer = torch.nn.Model(), torch.optim.SGD()
            def recompute():        # as autograd's thread, under activation checkpointing
                model(torch.Tensor()).backward(); optimizer.step(); torch.distributed.all_reduce(1)
                torch.Tensor("cuda").item(); torch.save(1, "x")
            for batch in torch.utils.data.DataLoader("ab"):
                thread = threading.Thread(target=recompute)
                thread.start(); thread.join()
            """)
        self.assertEqual({"step": 2, "dataloader_iter": 1, "dataloader_next": 3}, self.counts())

    def test_reductions_outside_of_steps_are_no_trainings(self):
        self.run_hooked("""
            import stepwell, torch
            run = stepwell.init()
            torch.distributed.all_reduce(1)
            for batch in torch.utils.data.DataLoader("ab"): torch.distributed.all_reduce(1)
            torch.distributed.all_reduce(1)
            """)
        self.assertEqual([0, 1], [s.batch for s in self.samples() if s.name == "reduce_metrics"])

    def test_the_import_may_be_asked_for_before_and_may_fail(self):
        out, err = self.run_hooked("""
            import importlib.util, sys
            import stepwell
            stepwell.init()
            spec = importlib.util.find_spec("torch")
            print(spec.origin.rpartition("/")[2], spec.loader.get_filename("torch") == spec.origin, "torch" in sys.modules)
            sys.modules["torch.cuda"] = None        # and so the first import fails
            try: import torch
            except ImportError: print("failed", "torch" in sys.modules)
            for name in [name for name in sys.modules if name.partition(".")[0] == "torch"]: del sys.modules[name]
            print(importlib.util.find_spec("torch").name)
            import torch
            print(type(torch.autograd.backward).__name__, type(torch.__loader__).__name__,
                  [finder._name for finder in sys.meta_path if type(finder).__name__ == "_Watch"])
            importlib.reload(torch)
            """)
        self.assertEqual("__init__.py True False\nfailed False\ntorch\n"
                         "Hooked SourceFileLoader ['safetensors.torch', 'torch.distributed.checkpoint', 'accelerate.data_loader']\n", out, err)
        self.assertNotIn("is hooked: ", err)

    def test_a_torch_that_is_none_or_half_a_one_is_imported_as_it_is(self):
        scratch = tempfile.TemporaryDirectory(dir=product.folder())
        self.addCleanup(scratch.cleanup)
        path = pathlib.Path(scratch.name, "torch.py")
        half = """
import sys, types
optim = nn = autograd = utils = distributed = types.ModuleType("half")
def broken(): raise RuntimeError("half a one")
distributed.is_available = broken
"""
        for text, wanted in (("", "nothing of torch is hooked: ImportError"), (half, "RuntimeError: half a one")):
            path.write_text(text)
            for source in ("import stepwell; stepwell.init(trial='none')\nimport torch; print(1)",
                           "import torch, stepwell; stepwell.init(trial='none'); print(1)"):  # fmt: skip
                with self.subTest(wanted, source=source):
                    out, err = self.run_trial(source, variables={"PYTHONPATH": scratch.name})
                    self.assertEqual("1\n", out)
                    self.assertNotIn("Traceback", err)
                    if text or "stepwell.init(trial='none')\n" in source:
                        self.assertEqual(1, err.count(wanted), err)
            said = by_run(product.folder(), product.python(), "-c", "import torch; print(1)",
                          variables={"PYTHONPATH": scratch.name})  # fmt: skip
            self.assertIn("1\n", said)
            self.assertNotIn("Traceback", said)

    def test_a_prefetching_thread_has_no_steps(self):
        self.run_hooked("""
            import threading, stepwell, torch
            run = stepwell.init()
            def fetch(): print(list(torch.utils.data.DataLoader("abc")))
            thread = threading.Thread(target=fetch)
            thread.start(); thread.join()
            run.record("end", 1)
            """)
        self.assertEqual({"end": 1}, self.counts())


if __name__ == "__main__":
    unittest.main()
