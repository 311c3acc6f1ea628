"""What the modules of frameworks are made of, without a framework; and that none of it harms a training."""

import pathlib
import unittest

from product import ProductTest

_HERE = pathlib.Path(__file__).resolve().parent
_ROOT = pathlib.Path(__file__).resolve().parents[2]


class TrainingTest(ProductTest):
    def train_batches(self, name: str) -> "list[int]":
        return sorted(sample.batch for sample in self.samples() if sample.name == name)

    def test_a_loop_of_ones_own_has_its_timings_by_their_names(self):
        out, err = self.run_trial("""
            from stepwell.integrations.pytorch import TrainingLoop
            class Batch:
                shape = (4, 2)
            training = TrainingLoop()
            for epoch in range(2):
                start = 5 if epoch == 0 else None
                for index, (inputs, _) in training.steps([(Batch(), 0)] * 3, epoch=epoch, start=start):
                    with training.to_device: pass
                    with training.train_batch:
                        with training.forward: pass
                for batch in training.evaluate("ab"): print(batch, index, end=" ")
            for index, batch in training.steps("xyz", epoch=2):
                if batch == "y": break
            for batch in training.evaluate("a"): pass
            try: training.elsewhere
            except AttributeError as error: print(error)
            """)
        self.assertEqual("a 7 b 7 a 10 b 10 'TrainingLoop' object has no attribute 'elsewhere'\n", out)
        steps = list(range(5, 12))
        self.assertEqual(steps, self.train_batches("step"))
        for name in ("to_device", "train_batch", "train_batch/forward", "samples_per_second"):
            self.assertEqual(steps[:-1], self.train_batches(name), name)
        found = [sample for sample in self.samples() if sample.name == "dataloader_next"]
        self.assertEqual({"train", "eval"}, {sample.labels["loader"] for sample in found})
        self.assertEqual([-1] * 5, [sample.batch for sample in found if sample.labels["loader"] == "eval"])
        self.assertEqual([(5, 0.0), (8, 1.0), (11, 2.0)],
                         sorted((s.batch, s.value) for s in self.samples() if s.name == "epoch"))  # fmt: skip
        self.assertIn("dataloader_next", err)

    def test_lightnings_actions_are_timings(self):
        self.run_trial("""
            from stepwell.integrations.lightning import Actions
            actions = Actions()
            def do(action, *inner):
                actions.start(action)
                for one in inner: do(*one)
                actions.stop(action)
            batch = ("run_training_batch", ("[Strategy]Single.training_step",),
                     ("[LightningModule]Mine.training_step",),
                     ("[LightningModule]Mine.optimizer_step",))
            epoch = ("run_training_epoch", *2 * (("[_TrainingEpochLoop].train_dataloader_next",),
                     ("[Strategy]Single.batch_to_device",), batch, ("[LightningModule]Mine.lr_scheduler_step",),
                     ("[Callback]Mine{'a': 1}.on_train_batch_end",)), ("[_EvaluationLoop].val_next",),
                     ("[Strategy]Single.validation_step",))
            do(*epoch); do(*epoch)
            """)
        steps = [0, 1, 2, 3]
        for name in ("step", "dataloader_next", "to_device", "train_batch", "train_batch/forward",
                     "train_batch/optimizer_step", "step_lr_schedulers",
                     "callback/Mine/on_train_batch_end"):  # fmt: skip
            self.assertEqual(steps, [batch for batch in self.train_batches(name) if batch >= 0], name)
        self.assertEqual([-1, -1], self.train_batches("eval_batch"))
        self.assertEqual([0, 2], self.train_batches("epoch"))

    def test_an_engine_that_only_looks_like_deepspeeds(self):
        out, _ = self.run_trial("""
            from stepwell.integrations.deepspeed import watch
            class Loader(list): pass
            class Scheduler:
                def step(self): pass
            class Monitor:
                enabled = True
                def write_events(self, events): print(events, end=" ")
            class Engine:
                training, micro_steps = True, 0
                training_dataloader, lr_scheduler, monitor = Loader("abc"), Scheduler(), Monitor()
                def forward(self, batch): return batch
                def backward(self, loss): pass
                def step(self):
                    self.lr_scheduler.step(); self.monitor.write_events([("Train/lr", 0.1, 4)])
                    self.micro_steps += 1
            engine = Engine()
            watched = watch(engine)
            for batch in engine.training_dataloader:
                engine.backward(engine.forward(batch)); engine.step()
            watched.end()
            print(type(engine.training_dataloader) is Loader, engine.forward.__name__, "step" in vars(engine))
            """)
        self.assertEqual("[('Train/lr', 0.1, 4)] " * 3 + "True forward False\n", out)
        for name in ("step", "train_batch", "train_batch/forward", "train_batch/backward", "train_batch/optimizer_step",
                     "train_batch/optimizer_step/step_lr_schedulers", "Train/lr"):  # fmt: skip
            self.assertEqual([0, 1, 2], self.train_batches(name), name)

    def test_a_loop_over_a_watched_loader_that_is_left_is_over(self):
        out, _ = self.run_trial("""
            from stepwell.integrations.deepspeed import watch
            class Loader(list): pass
            class Engine:
                training, micro_steps, lr_scheduler, monitor = True, 0, None, None
                training_dataloader = Loader("abc")
                def forward(self, batch): return batch
                def backward(self, loss): pass
                def step(self): self.micro_steps += 1
            engine = Engine()
            watched = watch(engine)
            iter(engine.training_dataloader)        # which is asked for nothing
            for epoch in range(2):
                for batch in engine.training_dataloader:
                    engine.backward(engine.forward(batch))
                    if epoch == 0 and batch == "b": break
                    engine.step()
            watched.end()
            """)
        self.assertEqual([0, 1, 2, 3], self.train_batches("step"), "the left one is none: 1 is its number once more")
        self.assertEqual([(0, 0.0), (1, 1.0)], sorted((s.batch, s.value) for s in self.samples() if s.name == "epoch"))

    def test_a_training_after_one_that_an_exception_ended_is_whole(self):
        out, _ = self.run_trial("""
            from stepwell import _run
            from stepwell.integrations._training import Training
            from stepwell.integrations.keras import _Watcher
            def fit(watcher, fails=""):
                watcher.train_begins()
                try:
                    watcher.epoch_begins(0)
                    for batch in range(3):
                        if fails == "in its fetch" and batch == 1: raise KeyboardInterrupt
                        watcher.batch_begins(batch)
                        if fails == "in its step" and batch == 1: raise OSError("theirs")
                        watcher.batch_ends(batch)
                    watcher.epoch_ends()
                    watcher.training.finish()
                except (OSError, KeyboardInterrupt) as error: print(type(error).__name__, end=" ")
            kept, other = _Watcher(None, None), _Watcher(None, None)
            for one in (kept, other):       # fit again, and another one's fit while the left one is alive
                for how in ("in its step", "in its fetch"):
                    fit(kept, how); fit(one)
                    print(_run.core.is_fetching(), end=" ")
            kept.training.run.close()
            Training().run.record("mine", 1)
            fit(other, "in its fetch")
            _run._run.close(); _run.init(hooks=False)
            print(_run.core.is_fetching())
            """)
        self.assertEqual("OSError False KeyboardInterrupt False " * 2 + "KeyboardInterrupt False\n", out)
        counts = self.counts()
        self.assertEqual((4 * 4 + 1, 4 * 4 + 4 // 2 + 1), (counts["step"], counts["train_batch"]), counts)
        self.assertNotIn("train_batch/train_batch", counts)

    def test_callbacks_beside_ours_are_timed_each(self):
        out, _ = self.run_trial("""
            import sys, types
            class Callback:
                def set_params(self, params): pass
                def on_train_begin(self, logs=None): pass
                def on_epoch_begin(self, epoch, logs=None): pass
                def on_train_batch_begin(self, batch, logs=None): pass
                def on_train_batch_end(self, batch, logs=None): pass
                def on_epoch_end(self, epoch, logs=None): pass
                def on_train_end(self, logs=None): pass
            keras = types.ModuleType("keras"); keras.callbacks = types.ModuleType("keras.callbacks")
            keras.callbacks.Callback = Callback
            sys.modules.update({"keras": keras, "keras.callbacks": keras.callbacks})
            from stepwell.integrations.keras import StepwellCallback
            class Mine(Callback):
                def on_train_batch_end(self, batch, logs=None): print(batch, end=" ")
            class Together:
                def __init__(self, callbacks): self.callbacks = callbacks
                def call(self, name, *arguments):
                    for one in self.callbacks: getattr(one, name)(*arguments)
            mine = Mine()
            for callbacks in ([StepwellCallback(), mine], [mine, StepwellCallback()]):
                together = Together(callbacks)
                together.call("on_train_begin"); together.call("on_epoch_begin", 0)
                print(type(mine) is Mine, end=" ")
                for batch in range(2): together.call("on_train_batch_begin", batch); together.call("on_train_batch_end", batch)
                together.call("on_epoch_end", 0); together.call("on_train_end")
                print(type(mine) is Mine, end=" ")
            """)
        self.assertEqual("False 0 1 True " * 2, out)
        timed = [name for name in self.counts() if name.startswith("callback/")]
        self.assertEqual(["callback/Mine/on_train_batch_end"], timed)
        self.assertEqual(4, self.counts()[timed[0]])

    def test_a_monitor_that_nobody_enabled_stays_off(self):
        out, _ = self.run_trial("""
            from stepwell.integrations.deepspeed import watch
            class Monitor:
                enabled = False
                def write_events(self, events): print(events)
            class Engine:
                training_dataloader, lr_scheduler, monitor = None, None, Monitor()
                def forward(self, batch): return batch
                def backward(self, loss): pass
                def step(self):
                    if self.monitor.enabled: print("waits for the device")
            engine = Engine()
            watch(engine)
            engine.step()
            print(engine.monitor.enabled)
            """)
        self.assertEqual("False\n", out)


# A training of Accelerate's, Composer's and Transformers' by their looks; `owners` is all that is watched.
_WATCHED = """
    import copy, pickle, sys, types
    import torch
    data_loader = types.ModuleType("accelerate.data_loader")
    def send_to_device(batch): return batch
    data_loader.send_to_device = send_to_device
    accelerate, composer = types.ModuleType("accelerate"), types.ModuleType("composer")
    accelerate.data_loader = data_loader
    sys.modules.update({"accelerate": accelerate, "accelerate.data_loader": data_loader, "composer": composer})
    class Callback:
        def run_event(self, event): pass
    composer.Callback = Callback
    class Saver(Callback):
        def __init__(self): self.saved = []
        def run_event(self, event): self.saved.append(event.value)
    class Trainer:
        def __init__(self): self.eval_batches = Loader("xy")
        def get_eval_dataloader(self): return self.eval_batches
        def evaluate(self): return list(self.get_eval_dataloader())
        def prediction_step(self): pass
    class Accelerator:
        def backward(self, loss): pass
        def gather(self, tensor): return tensor
    class Loader(list): pass
    class Slotted:
        __slots__ = ("weight",)
        def __init__(self): self.weight = 2
        def forward(self, batch): return self.weight * batch
    class Reduced(torch.nn.Weighted):
        def __reduce__(self): return type(self), (self.weight,)
    class Copied(torch.nn.Weighted):
        def __deepcopy__(self, memo): return type(self)(self.weight)
    optimizer, scheduler = torch.optim.SGD(), torch.optim.lr_scheduler.LRScheduler()
    late = torch.optim.SGD()
    torch.optim.lr_scheduler.LRScheduler(late)
    models = [torch.nn.Weighted(2), Slotted(), Reduced(2), Copied(2)]
    loader, saver, trainer, accelerator = Loader("ab"), Saver(), Trainer(), Accelerator()
    accelerator._optimizers, accelerator._schedulers, accelerator._models = [optimizer, late], [scheduler], models
    owners = [optimizer, late, scheduler, *models, loader, saver, trainer, accelerator]
    before = [(type(owner), list(getattr(owner, "__dict__", ()))) for owner in owners]
    from stepwell.integrations import accelerate as of_accelerate, composer as of_composer
    from stepwell.integrations import transformers as of_transformers
    watched = of_accelerate.watch(accelerator, loader)
    composers, transformers = of_composer._Watcher(None), of_transformers._Watcher(None)
    composers._time_events(saver, "run_event", "callback", 0)
    transformers.watch_evaluation(trainer)
"""


class HarmTest(ProductTest):
    def run_watched(self, source: str) -> tuple[str, str]:
        return self.run_trial(_WATCHED + source, variables={"PYTHONPATH": str(_HERE / "fake_torch")})

    def test_what_is_watched_is_stored_and_copied_as_it_was(self):
        out, err = self.run_watched("""
    stored = torch.save([scheduler.state_dict(), optimizer], "x")
    print(b"stepwell" in stored, pickle.loads(stored)[0])
    for owner, (kind, names) in zip(owners, before):
        if list(getattr(owner, "__dict__", ())) != names: print(kind, vars(owner))
        for protocol in (2, 3, 4, 5):
            if kind is Slotted and protocol < 2: continue
            stored = pickle.dumps(owner, protocol)
            if b"stepwell" in stored or type(pickle.loads(stored)) is not kind: print(kind, stored)
        for copied in (copy.copy(owner), copy.deepcopy(owner)):
            if type(copied) is not kind: print(kind, type(copied))
    for model in models:
        for make in (copy.deepcopy, lambda it: pickle.loads(pickle.dumps(it))):
            copied = make(model)
            copied.weight = 5
            print(copied.forward(10), model.forward(10), end=" ")
        print(pickle.loads(pickle.dumps(model.forward))(10), copy.deepcopy(model.forward)(10))
    print(pickle.loads(pickle.dumps(data_loader.send_to_device))(1))
    watched.end()
    composers.close(); transformers.end()
    print([type(owner) is kind for owner, (kind, _) in zip(owners, before)], data_loader.send_to_device is send_to_device)
    """)
        self.assertEqual("False {'_step_count': 1}\n" + 4 * "50 20 50 20 20 20\n" + "1\n"
                         f"{[True] * 11} True\n", out, err)  # fmt: skip

    def test_what_is_watched_is_seen_and_called_as_it_was(self):
        out, err = self.run_watched("""
    class Event: value = "batch_end"
    torch.optim.lr_scheduler.LRScheduler(optimizer)     # puts its wrapper into what is watched
    import threading
    for batch in loader:
        print(models[0](2), models[0](3), accelerator.backward(None), end=" ")
        print(optimizer.step(), late.step(), scheduler.step(), saver.run_event(Event()))
        thread = threading.Thread(target=models[0], args=(1,))
        thread.start(); thread.join()
    print(optimizer.count, late.count, hasattr(late.step, "counts"), late.step.__name__, type(optimizer).__qualname__)
    print(saver.saved, trainer.evaluate(), models[0].forward == torch.nn.Weighted.forward.__get__(models[0]))
    import inspect
    print(inspect.signature(models[0].forward), type(optimizer).step.hooked)
    watched.end(); composers.close()
    """)
        self.assertEqual(2 * "4 6 None stepped stepped None None\n" + "2 2 True counted SGD\n"
                         "['batch_end', 'batch_end'] ['x', 'y'] True\n(batch) True\n", out, err)  # fmt: skip
        counts = self.counts()
        for name in ("train_batch", "train_batch/forward", "train_batch/backward", "train_batch/optimizer_step", "step_lr_schedulers"):
            self.assertEqual(2, counts.get(name), counts)
        counted = counts.get("train_batch/forward.count"), counts.get("train_batch/optimizer_step.count")
        self.assertEqual((2, 2), counted, "none twice")
        self.assertEqual(2, counts.get("callback/Saver/batch_end"))

    def test_a_batch_that_cannot_be_looked_at_ends_its_fetch(self):
        out, err = self.run_trial("""
            from stepwell.integrations.pytorch import TrainingLoop
            class Batch:
                @property
                def shape(self): raise RuntimeError("lazy")
            class Graph:
                def values(self): raise RuntimeError("on the device")
            for index, batch in TrainingLoop().steps([Batch(), Graph(), Batch()]): print(index, end=" ")
            """)
        self.assertEqual("0 1 2 ", out)
        self.assertEqual([0, 1, 2], [sample.batch for sample in self.samples() if sample.name == "dataloader_next"])
        self.assertEqual(1, err.count("is not recorded: RuntimeError: lazy"), err)
        self.assertNotIn("on the device", err)
    def test_no_module_imports_a_framework_before_it_is_used(self):
        names = sorted(path.stem for path in (_ROOT / "client/python/stepwell/integrations").glob("[a-z]*.py"))
        self.assertEqual(7, len(names))
        out, _ = self.run_trial(f"""
            import builtins, importlib, sys
            original = builtins.__import__
            def watched(name, *rest, **more):
                top = name.partition(".")[0]
                if top in {{*{names!r}, "torch", "pytorch_lightning"}}: print("imported", name)
                return original(name, *rest, **more)
            builtins.__import__ = watched
            for name in {names!r}:
                module = importlib.import_module("stepwell.integrations." + name)
                try: module.Missing
                except AttributeError as error: print(name, end=" ")
            """)
        self.assertEqual(" ".join(names) + " ", out)

    def test_what_fails_in_ours_is_a_warning_once_and_no_exception(self):
        out, err = self.run_trial("""
            import stepwell
            from stepwell.integrations._training import Training
            from stepwell.integrations._watch import watch_call, watch_items
            class Broken:
                _schedule, _is_closed = None, False
                def __getattr__(self, name): raise OSError("ours")
            training = Training(Broken())
            for _ in range(3):
                training.fetch_begins(); training.fetch_ends(4)
                training.begin("train_batch"); training.end("train_batch")
                training.step_ends(); training.leave(); training.finish(); training.record("loss", 1)
            def fail(*_): raise ValueError("ours, too")
            class Owner:
                def call(self, value): return value + 1
            owner = Owner()
            restore = watch_call(owner, "call", fail, fail)
            print(list(watch_items(iter("ab"), fail, fail)), owner.call(1), restore(), owner.call(2))
            """)
        self.assertEqual("['a', 'b'] 2 None 3\n", out)
        said = [line for line in err.splitlines() if "is not recorded" in line]
        self.assertEqual(len(said), len(set(said)), err)
        for error in ("OSError: ours", "ValueError: ours, too"):
            self.assertTrue(any(error in line for line in said), err)

    def test_a_watched_loader_is_what_it_was(self):
        out, _ = self.run_trial("""
            import copy, pickle
            from stepwell.integrations._watch import watch_loader
            seen = []
            def end(item, is_found): seen.append((item, is_found))
            class Loader:
                def __init__(self): self.batches = [1, 2]
                def __iter__(self): return iter(self.batches)
                def __len__(self): return len(self.batches)
            class Posing(Loader):
                @property
                def __class__(self): return dict
            for kind in (Loader, Posing):
                loader = kind()
                restore = watch_loader(loader, lambda: None, end)
                print(list(loader), seen, len(loader), type(loader).__name__,
                      isinstance(loader, Loader), list(copy.copy(loader)),
                      type(pickle.loads(pickle.dumps(loader))) is kind, watch_loader(loader, None, None))
                restore(); seen.clear()
                print(type(loader) is kind, list(loader), seen)
            class Fails(Loader):
                def __iter__(self):
                    yield 1
                    raise KeyError("theirs")
            loader = Fails()
            watch_loader(loader, lambda: None, end)
            try:
                for _ in loader: pass
            except KeyError as error: print(error, seen)
            print(watch_loader([1], None, None))
            """)
        self.assertEqual(
            "[1, 2] [(1, True), (2, True), (None, False)] 2 Loader True [1, 2] True None\nTrue [1, 2] []\n"
            "[1, 2] [(1, True), (2, True), (None, False)] 2 Posing True [1, 2] True None\nTrue [1, 2] []\n"
            "'theirs' [(1, True), (None, False)]\nNone\n", out)  # fmt: skip

    def test_scopes_that_an_exception_left_open_are_closed(self):
        self.run_trial("""
            from stepwell.integrations._training import Training
            training = Training()
            training.fetch_begins(); training.fetch_ends()
            training.begin("train_batch"); training.begin("forward")   # and it raised
            training.end("never begun")
            training.step_ends()
            training.fetch_begins(); training.fetch_ends()
            training.begin("train_batch"); training.begin("forward"); training.end("train_batch")
            training.step_ends(); training.finish(); training.finish()
            """)
        self.assertEqual({"step": 2, "dataloader_next": 2, "train_batch": 2, "train_batch/forward": 2}, self.counts())

    def test_a_wall_clock_that_jumps_is_in_no_timing(self):
        self.run_trial("""
            import time, stepwell
            from stepwell.integrations.pytorch import TrainingLoop
            now_s = time.time()
            def jump(days=[0]):
                days[0] = -days[0] + 1
                return now_s + days[0] * 86400
            time.time, time.time_ns = jump, lambda: int(jump() * 1e9)
            training = TrainingLoop()
            for index, batch in training.steps(range(5), epoch=0):
                with training.train_batch: pass
            """)
        timings = [sample for sample in self.samples() if sample.group == "timing"]
        self.assertEqual(15, len(timings))
        self.assertTrue(all(0 <= sample.value < 60 for sample in timings), [sample.value for sample in timings])

    def test_what_records_while_the_interpreter_ends_harms_nobody(self):
        _, err = self.run_trial("""
            import atexit, stepwell, threading
            from stepwell.integrations.pytorch import TrainingLoop
            run = stepwell.init()
            class Late:
                def __init__(self): self.training, self.loop = TrainingLoop(run), iter(run.steps("abc", epoch=1))
                def __del__(self):
                    next(self.loop, None)
                    with self.training.train_batch: run.record("late", 1)
            late = Late(); late.itself = late
            left = training = TrainingLoop(run).steps("abc", epoch=0); next(left)
            kept = run.scope("kept"); kept.__enter__()
            atexit.register(lambda: run.record("at exit", 1))
            next(late.loop)
            """, variables={"STEPWELL_EXIT_WAIT": "0"})  # fmt: skip
        self.assertNotIn("Traceback", err)
        self.assertNotIn("Exception ignored", err)
        self.assertTrue(self.eventually(lambda: self.counts().get("at exit") == 1), self.counts())

    def test_samples_of_a_batch_are_counted_where_they_can_be(self):
        out, _ = self.run_trial("""
            from stepwell.integrations._training import samples_of
            class Array:
                def __init__(self, *shape): self.shape = shape
            nested = {"a": [{"x": (Array(7, 2), Array(9))}, "text"]}
            texts = {"text": ["a", "b"], "ids": Array(6, 2)}
            deep = Array(3)
            for _ in range(9): deep = [deep]
            looks = []
            class Number(int):
                def __getattr__(self, name): looks.append(name); raise AttributeError(name)
            lists = {"ids": [[Number(1)] * 2048] * 64, "mask": [[Number(1)] * 2048] * 64}
            class Graph:
                def values(self): raise RuntimeError("on the device")
            for batch in (Array(4, 3), [Array(5)], nested, texts, Array(), "text", None, 3, [], {}, deep, lists, Graph()):
                print(samples_of(batch), end=" ")
            print(len(looks) < 100)
            """)
        self.assertEqual("4 5 7 6 None None None None None None None None None True\n", out)


if __name__ == "__main__":
    unittest.main()
