"""What an exception leaves of a training that somebody still holds, as a notebook's last traceback does: the one that follows is
whole, and nothing else is held."""

import textwrap
import unittest

from product import ProductTest
from test_accelerate import _ACCELERATE
from test_hooks import _FAKE, _STEP
from test_interrupted_frameworks import KERAS
from test_trainings import _TRAINER

_MODULES = """
module = sys.modules["transformers.trainer"] = types.ModuleType("transformers.trainer")
module.skip_first_batches = lambda loader, count: Loader(loader[count:])
module.nested_gather = lambda tensor: tensor
sys.modules["accelerate"] = types.ModuleType("accelerate")
data_loader = sys.modules["accelerate"].data_loader = types.ModuleType("accelerate.data_loader")
data_loader.send_to_device = lambda batch: batch
skip_first_batches, send_to_device = module.skip_first_batches, data_loader.send_to_device
"""

WHOLE = _TRAINER + _MODULES + """
class Other(Callback):
    def on_step_end(self, *_, **__): pass
class Whole(Trainer):
    def train(self, skipped=0, fails_at=None):
        loader = Loader("abcd")
        state, control, self.callbacks = Made(global_step=skipped, epoch=0), Made(), self.callback_handler.callbacks
        def tell(event, **more):
            for one in self.callbacks: getattr(one, event)(None, state, control, **more)
        tell("on_train_begin", train_dataloader=loader)
        for batch in module.skip_first_batches(loader, skipped) if skipped else loader:
            data_loader.send_to_device(batch)
            if state.global_step == fails_at: raise OSError("theirs")
            tell("on_step_begin")
            state.global_step += 1
            tell("on_step_end")
        tell("on_epoch_end"); tell("on_train_end")
for name in ("train_begin", "step_begin", "step_end", "epoch_end", "train_end"):
    setattr(Callback, "on_" + name, lambda self, *_, **__: None)
"""


class LeftTrainingTest(ProductTest):
    def batches(self, name: str) -> "list[int]":
        return sorted(sample.batch for sample in self.samples() if sample.name == name and sample.batch >= 0)

    def test_a_trainer_after_one_that_an_exception_left_is_told_of_all_of_it(self):
        out, err = self.run_trial(WHOLE + """
from stepwell.integrations.transformers import StepwellCallback
run, other = stepwell.init(hooks=False), Other()
left = Whole()
for one in (StepwellCallback(), other): left.add_callback(one)
try: left.train(fails_at=2)
except OSError as error: kept = error
second = Whole()
for one in (StepwellCallback(), other): second.add_callback(one)
second.train(skipped=1)
print(module.skip_first_batches is skip_first_batches, data_loader.send_to_device is send_to_device, type(other) is Other)
with run.scope("after"): pass
""".replace("StepwellCallback\nrun", "StepwellCallback\nimport stepwell\nrun"))
        self.assertEqual("True True True\n", out, err)
        # 0 and 1 of the one that was left, whose 2 was left midway.
        self.assertEqual([0, 1, 1, 2, 3], self.batches("step"))
        for name in ("dataloader_next", "to_device", "train_batch", "callback/Other/on_step_end"):
            self.assertEqual([0, 1, 1, 2, 3], self.batches(name), name)
        self.assertEqual([-1], [s.batch for s in self.samples() if s.name == "after"])

    def test_a_watch_after_one_that_nobody_ended_is_told_of_all_of_it(self):
        """Of the same loader, and of another. The newest is told of what is of no loader; then the one before is again."""
        out, err = self.run_trial(_ACCELERATE + """
import accelerate, time
from stepwell.integrations import _training
from stepwell.integrations.accelerate import watch
now_s = 0.0
_training.time = types.SimpleNamespace(perf_counter=lambda: now_s, time_ns=time.time_ns)
def send(batch):
    global now_s
    now_s += 100.0
accelerate.data_loader.send_to_device = send
class Sends(Loader):
    def __iter__(self):
        for batch in super().__iter__():
            accelerate.data_loader.send_to_device(batch)
            yield batch
loader, other = Sends("abcd"), Sends("xy")
left = watch(accelerator, loader)
try:
    for batch in loader:
        accelerator.backward(batch)
        if batch == "c": raise OSError("theirs")
except OSError as error: kept = error
watched = watch(accelerator, loader)
for batch in loader: accelerator.backward(batch)
newest = watch(accelerator, other)
for batch in other: pass
newest.end()
for batch in loader: pass
left.end(); watched.end()
print(accelerate.data_loader.send_to_device is send, type(loader) is Sends, type(accelerator) is Accelerator)
""")
        self.assertEqual("True True True\n", out, err)
        for name in ("step", "dataloader_next", "to_device"):
            self.assertEqual([0, 1, *range(3, 3 + 10)], self.batches(name), name)
        self.assertEqual([0, 1, *range(3, 3 + 4)], self.batches("train_batch"))
        fetches = {s.batch: s.value for s in self.samples() if s.name == "dataloader_next"}
        self.assertEqual({0.0}, set(fetches.values()), fetches)

    def test_a_plain_loop_after_a_fit_that_was_left_in_a_fetch_is_seen(self):
        rows = (
            # Eight optimizers' steps tell that nobody fetches any more; then the loop has steps.
            ("hooked", "train(torch.utils.data.DataLoader(range(20)))", list(range(2, 2 + 20 - 9))),
            # A loop of the program's own says so when it begins.
            ("steps", "for _, task in run.steps([torch.utils.data.DataLoader(range(20))]): train(task)", list(range(2, 2 + 20 - 8))),
        )  # fmt: skip
        for name, loop, wanted in rows:
            with self.subTest(name):
                trial = f"{self.trial}.{name}"
                _, err = self.run_trial("import torch" + KERAS + textwrap.dedent("""
                    import stepwell
                    run = stepwell.init()
                    """) + _STEP + textwrap.dedent(f"""
                    class Fails(Callback):
                        def on_train_batch_end(self, batch, logs=None):
                            if batch == 1: raise OSError("theirs")
                    count_anew = lambda: None
                    try: fit([mine, Fails()], 0)
                    except OSError as error: kept = error
                    assert core.is_fetching()
                    {loop}
                    assert not core.is_fetching()
                    """), variables={"PYTHONPATH": _FAKE, "STEPWELL_TRIAL": trial})  # fmt: skip
                found = self.samples(trial)
                for timing in ("step", "train_batch/optimizer_step"):
                    self.assertEqual(wanted, [s.batch for s in found if s.name == timing and s.batch >= 2], err)

    def test_a_fit_that_raises_keeps_no_data(self):
        out, err = self.run_trial(KERAS + """
import gc, weakref
sys.modules["keras"].backend = Made(backend=lambda: "jax")
class EpochIterator:
    data_adapter = Made(batch_size=4, partial_batch_size=2, num_batches=2)
    def _get_iterator(self): return "ab"
def fit(together):
    epoch_iterator = EpochIterator()
    held.append(weakref.ref(epoch_iterator))
    for one in together.callbacks: one.set_params({"steps": 2})
    together.tell("train_begin"); together.tell("epoch_begin", 0)
    together.tell("train_batch_begin", 0)
    next(epoch_iterator._get_iterator())
    raise OSError("theirs")
def evaluate(together):
    epoch_iterator = EpochIterator()
    held.append(weakref.ref(epoch_iterator))
    together.tell("test_begin"); together.tell("test_batch_begin", 0)
    next(epoch_iterator._get_iterator())
    raise OSError("theirs")
held = []
for function in (fit, evaluate):
    try: function(Together([mine]))
    except OSError: pass
gc.collect()
print([one() is None for one in held])
mine._stepwell.watches.end(); mine._stepwell._of_evaluation.end()
""")
        self.assertEqual("[True, True]\n", out, err)
        self.assertNotIn("is not recorded", err)


class KerasNumbersTest(ProductTest):
    def test_batches_of_a_fit_go_on_behind_what_was_trained_and_not_behind_what_hooks_saw(self):
        """fit() looks at a batch before it tells of its begin, and an evaluation asks for batches with gradients on."""
        for name, looks_before, wanted in (
            ("evaluated", "for batch in torch.utils.data.DataLoader('abc'): pass", list(range(4))),
            ("trained", "train(torch.utils.data.DataLoader('abc'))", list(range(3, 7))),
            ("stepped", "for _ in run.steps('abc'): pass", list(range(3, 7))),
        ):  # fmt: skip
            for steps in (2, None):
                with self.subTest(name, steps=steps):
                    trial = f"{self.trial}.{name}.{steps}"
                    _, err = self.run_trial("import torch" + KERAS + f"""
import stepwell
run = stepwell.init()
{_STEP}
count_anew = lambda: None
set_params = StepwellCallback.set_params
StepwellCallback.set_params = lambda self, params: set_params(self, {{"steps": {steps}}})
{looks_before}
for batch in torch.utils.data.DataLoader("x"): break
del batch
fit([mine], 0)
""", variables={"PYTHONPATH": _FAKE, "STEPWELL_TRIAL": trial})  # fmt: skip
                    found = self.samples(trial)
                    self.assertEqual(wanted, sorted(s.batch for s in found if s.name == "samples_per_second"), err)


if __name__ == "__main__":
    unittest.main()
