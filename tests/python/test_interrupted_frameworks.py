"""Ctrl-C at each line of ours in trainings of Lightning, Composer, Keras and DeepSpeed, by their looks alone: it passes, and
the training that follows in the same run is whole."""

import textwrap
import unittest

import interrupts
from product import ProductTest

# One that is interrupted begins at the batch that live() is told, so that the whole ones after it can be told from it.
_INTERRUPTED = 1000
_LIVE = f"""
    import stepwell
    run = stepwell.init(hooks=False)
    lines = []
    def after(line):
        live(0)
        with run.scope("after"): pass
        lines.append(line)
        if len(lines) % 50 == 0: assert run.flush(60)  # such a rate fills a ring whose agent waits for a core
    count, swallowed = interrupt_twice(lambda: live({_INTERRUPTED}), lambda code: "/stepwell/" in code.co_filename, after)
    print(count, swallowed, is_left())
    run.close(60)
    """

_KEEPS = """
import sys, types
from types import SimpleNamespace as Made
def module(name, **more):
    made = sys.modules[name] = types.ModuleType(name)
    vars(made).update(more)
    return made
class Loader(list): pass
"""

KERAS = _KEEPS + """
class Callback:
    def set_params(self, params): pass
for name in ("train_begin", "train_end", "epoch_begin", "epoch_end", "train_batch_begin", "train_batch_end", "test_begin",
             "test_end", "test_batch_begin", "test_batch_end"):
    setattr(Callback, "on_" + name, lambda self, *_, logs=None: None)
module("keras", callbacks=module("keras.callbacks", Callback=Callback))
from stepwell._load import core
from stepwell.integrations.keras import StepwellCallback
class Other(Callback):
    def on_train_batch_end(self, batch, logs=None): pass
def count_anew():
    # Else the numbers would go on behind the interrupted one's. Of that nothing is open.
    loop = core.Loop()
    assert loop.begin() and not core.is_fetching()
    loop.leave(); core.reset()
class Together:
    def __init__(self, callbacks): self.callbacks = callbacks
    def tell(self, name, *arguments):
        for one in self.callbacks: getattr(one, "on_" + name)(*arguments)
def fit(callbacks, initial_epoch):
    epoch_iterator = Made(data_adapter=Made(batch_size=4, partial_batch_size=2, num_batches=2))
    for one in callbacks: one.set_params({"steps": 2})
    together = Together(callbacks)
    together.tell("train_begin")
    if initial_epoch == 0: count_anew()
    for epoch in (initial_epoch, initial_epoch + 1):
        together.tell("epoch_begin", epoch)
        for batch in range(2): together.tell("train_batch_begin", batch); together.tell("train_batch_end", batch)
        together.tell("test_begin"); together.tell("test_batch_begin", 0); together.tell("test_batch_end", 0)
        together.tell("test_end"); together.tell("epoch_end", epoch)
    together.tell("train_end")
mine, other = StepwellCallback(), Other()
def live(first): fit([other, mine], first // 2)
def is_left(): return type(other) is Other
"""

# A trainer tells its callbacks of an exception.
LIGHTNING_STEPS = ("step", "to_device", "train_batch", "train_batch/optimizer_step", "train_batch/optimizer_step/forward",
                   "dataloader_next", "samples_per_second", "callback/Other/on_train_batch_end")  # fmt: skip
LIGHTNING = _KEEPS + """
import contextlib
class Callback: pass
for name in ("setup", "teardown", "on_train_batch_start", "on_train_batch_end", "on_validation_start", "on_exception"):
    setattr(Callback, name, lambda self, *_: None)
class Profiler:
    _stage = None
    def setup(self, stage, local_rank=None, log_dir=None): self._stage = stage
    def teardown(self, stage): pass
    def describe(self): self.teardown(self._stage)
    def __del__(self): self.teardown(self._stage)
    def start(self, action): pass
    def stop(self, action): pass
    @contextlib.contextmanager
    def profile(self, action):
        self.start(action)
        try: yield action
        finally: self.stop(action)
module("PACKAGE", Callback=Callback, profilers=module("PACKAGE.profilers", Profiler=Profiler))
from stepwell.integrations.lightning import StepwellCallback, StepwellProfiler
class Other(Callback):
    def on_train_batch_end(self, *_): pass
class Trainer:
    num_training_batches = 2
    def __init__(self, callbacks, profiler): self.callbacks, self.profiler = callbacks, profiler or Profiler()
    def tell(self, name, *more):
        for one in self.callbacks:
            with self.profiler.profile(f"[Callback]{type(one).__qualname__}.{name}"): getattr(one, name)(self, None, *more)
    def do(self, action, *inner):
        with self.profiler.profile(action):
            for one in inner: self.do(one)
    def fit(self, first):
        try: self.run(first)
        except BaseException as error:
            for one in self.callbacks: one.on_exception(self, None, error)
            raise
    def run(self, first):
        self.profiler._lightning_module = Made(_trainer=self)
        self.profiler.setup("fit")
        self.tell("setup", "fit")
        loop = Made(total_batch_idx=first - 1)
        self.fit_loop = Made(epoch_loop=loop)
        for self.current_epoch in (first // 2, first // 2 + 1):
            loop.batch_idx = -1
            with self.profiler.profile("run_training_epoch"):
                for batch in range(2):
                    self.do("[_TrainingEpochLoop].train_dataloader_next"); self.do("[Strategy]Single.batch_to_device")
                    loop.batch_idx += 1; loop.total_batch_idx += 1
                    self.tell("on_train_batch_start", Made(shape=(4, 2)), batch)
                    with self.profiler.profile("run_training_batch"):
                        self.do("[LightningModule]Mine.optimizer_step", "[Strategy]Single.training_step")
                    self.tell("on_train_batch_end", None, None, batch)
                self.tell("on_validation_start")
                self.do("[_EvaluationLoop].val_next"); self.do("[Strategy]Single.validation_step")
        self.tell("teardown", "fit")
        self.profiler.describe()
trainer = Trainer(CALLBACKS, PROFILER)
def live(first): trainer.fit(first)
def is_left(): return [type(one).__name__ for one in trainer.callbacks]
"""

# Its trainer tells of no exception.
_COMPOSER = _KEEPS + """
from test_composer import PAIRS
class Callback:
    def run_event(self, event, state, logger): getattr(self, event.value, lambda *_: None)(state, logger)
    def batch_end(self, state, logger): pass
    def close(self, state, logger): pass
module("composer", Callback=Callback)
from stepwell.integrations.composer import StepwellCallback
before, after_those = map(list, zip(*PAIRS))
class Event:
    def __init__(self, value):
        self.value, self.is_before_event, self.is_after_event = value, value in before, value in after_those
        name = value
        for word in ("before_", "after_", "_start", "_end"): name = name.replace(word, "")
        self.canonical_name = name
class Other(Callback):
    def batch_end(self, state, logger): pass
class Algorithm:
    def apply(self, event, state, logger): pass
class Scheduler:
    def step(self): pass
class Device:
    def batch_to_device(self, batch): return batch
stepwell_callback, other, algorithm, scheduler, device = StepwellCallback(), Other(), Algorithm(), Scheduler(), Device()
loader, evaluation = Loader("ab"), Loader("x")
def live(first):
    stamp = Made(sample=4 * first, batch=first, epoch=first // 2, batch_in_epoch=0)
    state = Made(timestamp=stamp, dataloader_len=2, train_dataloader=loader, dataloader=loader,
                 callbacks=[stepwell_callback, other], algorithms=[algorithm], schedulers=[scheduler], device=device)
    def tell(*values):
        for event in map(Event, values):
            if event.value == "before_loss": algorithm.apply(event, state, None)
            for one in state.callbacks: one.run_event(event, state, None)
    tell("fit_start")
    for epoch in range(2):
        tell("epoch_start")
        items = iter(loader)
        while True:
            tell("before_dataloader")
            batch = next(items, None)
            if batch is None: break
            device.batch_to_device(batch)
            tell("after_dataloader", "batch_start", "before_train_batch", "before_forward", "after_forward", "before_loss", "after_loss",
                 "before_backward", "after_backward", "after_train_batch")
            stamp.sample += 4; stamp.batch += 1; stamp.batch_in_epoch += 1
            scheduler.step()
            tell("batch_end")
        stamp.epoch, stamp.batch_in_epoch = stamp.epoch + 1, 0
        tell("epoch_end", "eval_before_all")
        state.dataloader = evaluation
        tell("eval_start")
        for batch in evaluation: tell("eval_batch_start", "eval_before_forward", "eval_after_forward", "eval_batch_end")
        tell("eval_end", "eval_after_all")
        state.dataloader = loader
    tell("fit_end")
def is_left():
    stepwell_callback.close(None, None)
    kinds = [Other, Algorithm, Scheduler, Device, Loader, Loader]
    return [type(one) is kind for one, kind in zip((other, algorithm, scheduler, device, loader, evaluation), kinds)]
"""

_DEEPSPEED = _KEEPS + """
from stepwell.integrations.deepspeed import watch
class Scheduler:
    def step(self): pass
class Monitor:
    enabled = True
    def write_events(self, events): pass
class Engine:
    training, micro_steps = True, 0
    def __init__(self):
        self.training_dataloader, self.lr_scheduler, self.monitor = Loader("ab"), Scheduler(), Monitor()
    def __call__(self, batch): return batch
    def backward(self, loss): pass
    def step(self):
        self.lr_scheduler.step(); self.monitor.write_events([("lr", 0.1, 4)])
        self.micro_steps += 1
engine, evaluation = Engine(), Loader("x")
def live(first):
    engine.micro_steps, engine.training = first, True
    for epoch in range(2):
        for batch in engine.training_dataloader: engine.backward(engine(batch)); engine.step()
        engine.training = False
        for batch in evaluation: engine(batch)
        engine.training = True
watched = watch(engine, eval_loader=evaluation)
def is_left():
    watched.end()
    kinds = {engine: Engine, engine.lr_scheduler: Scheduler, engine.monitor: Monitor}
    return [type(one) is kind for one, kind in kinds.items()] + [type(evaluation) is type(engine.training_dataloader) is Loader]
"""


class InterruptedFrameworksTest(ProductTest):
    def assert_whole_after_each(self, source: str, left: str, names: "tuple[str, ...]", alone: "tuple[str, ...]") -> None:
        """Each of the names has a sample of each of four steps in each whole training, and each of `alone` two in none."""
        import pathlib

        out, err = self.run_trial(interrupts.SOURCE + source + textwrap.dedent(_LIVE), variables={
            "PYTHONPATH": str(pathlib.Path(__file__).resolve().parent)})  # fmt: skip
        count = int(out.partition(" ")[0])
        self.assertEqual(f"{count} [] {left}\n", out, err)
        self.assertGreater(count, 100)
        for said in ("is not recorded", "dropped", "Traceback", "Exception ignored"):
            self.assertNotIn(said, err)
        found = self.samples()
        whole: "dict[str, dict[int, int]]" = {}
        for sample in found:
            if sample.batch < _INTERRUPTED:
                batches = whole.setdefault(sample.name, {})
                batches[sample.batch] = batches.get(sample.batch, 0) + 1
        self.assertEqual({"after": {-1: count}}, {name: of for name, of in whole.items() if name.rpartition("/")[2] == "after"})
        for name in names:
            of = {batch: number for batch, number in whole[name].items() if batch >= 0}
            self.assertEqual({batch: count for batch in range(4)}, of, name)
        for name in alone:
            self.assertGreaterEqual(whole[name][-1], 2 * count, name)
        doubled = [name for name in whole if len(set(name.split("/"))) < len(name.split("/"))]
        self.assertEqual([], [name for name in doubled if not name.startswith("callback/")], "one within itself")

    def test_of_keras(self):
        self.assert_whole_after_each(KERAS, "True", (
            "step", "train_batch", "dataloader_next", "samples_per_second", "callback/Other/on_train_batch_end"),
            ("eval_batch",))  # fmt: skip

    def test_of_lightnings_callback_and_its_profiler(self):
        of = LIGHTNING.replace("PACKAGE", "pytorch_lightning")
        for name, callbacks, profiler, left in [
            ("callback", "[Other(), StepwellCallback()]", "None", ["Other", "StepwellCallback"]),
            ("profiler", "[Other()]", "StepwellProfiler()", ["Other"]),
        ]:  # fmt: skip
            with self.subTest(name):
                self.part = name
                self.assert_whole_after_each(of.replace("CALLBACKS", callbacks).replace("PROFILER", profiler), str(left),
                                             LIGHTNING_STEPS, ("eval_batch",))  # fmt: skip

    def test_of_composer(self):
        self.assert_whole_after_each(_COMPOSER, str([True] * 6), (
            "step", "to_device", "train_batch", "train_batch/forward", "train_batch/loss", "train_batch/backward",
            "step_lr_schedulers", "dataloader_next", "samples_per_second", "callback/Other/batch_end",
            "algorithm/Algorithm/before_loss", "event/batch"), ("eval_batch",))  # fmt: skip

    def test_of_deepspeed(self):
        self.assert_whole_after_each(_DEEPSPEED, str([True] * 4), (
            "step", "train_batch", "train_batch/forward", "train_batch/backward", "train_batch/optimizer_step",
            "train_batch/optimizer_step/step_lr_schedulers", "dataloader_next", "lr"), ("forward",))  # fmt: skip

    def test_a_watch_whose_making_is_interrupted_leaves_nothing_watched(self):
        source, _, _ = _DEEPSPEED.partition("watched = watch(")
        out, err = self.run_trial(interrupts.SOURCE + source + textwrap.dedent("""
    import stepwell
    run = stepwell.init(hooks=False)
    owners = {engine: Engine, engine.lr_scheduler: Scheduler, engine.monitor: Monitor}
    left, kept = [], []
    def after(line):
        watch(engine, eval_loader=evaluation).end()     # what was put, and is held by nobody, goes with who comes next
        loaders = type(engine.training_dataloader), type(evaluation)
        if any(type(one) is not kind for one, kind in owners.items()) or loaders != (Loader, Loader): left.append(line)
    count, swallowed = interrupt_twice(lambda: kept.append(watch(engine, eval_loader=evaluation)),
                                       lambda code: "/stepwell/" in code.co_filename, after)
    kept[-1].end()
    print(count > 50, swallowed, left)
    run.close(60)
    """))
        self.assertEqual("True [] []\n", out, err)
        self.assertNotIn("is not recorded", err)

    part = ""

    @property
    def trial(self) -> str:
        return super().trial + (f".{self.part}" if self.part else "")


if __name__ == "__main__":
    unittest.main()
