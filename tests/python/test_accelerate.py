"""Accelerate's loaders and tracker, by their looks alone."""

import unittest

from product import ProductTest

_ACCELERATE = """
import sys, types
accelerate = types.ModuleType("accelerate")
accelerate.data_loader, accelerate.tracking = types.ModuleType("data_loader"), types.ModuleType("tracking")
accelerate.data_loader.send_to_device = lambda batch: batch
class GeneralTracker:
    def __init__(self, _blank=False): pass
accelerate.tracking.GeneralTracker = GeneralTracker
sys.modules.update({"accelerate": accelerate, "accelerate.data_loader": accelerate.data_loader,
                    "accelerate.tracking": accelerate.tracking})
class Loader:
    def __init__(self, batches): self.batches, self.iteration = batches, 0
    def __iter__(self):
        yield from self.batches
        self.iteration += 1
class Accelerator:
    _optimizers = _schedulers = _models = ()
    def backward(self, loss): pass
    def skip_first_batches(self, dataloader, num_batches=0): return Loader(dataloader.batches[num_batches:])
accelerator, loader, evaluation = Accelerator(), Loader("abcd"), Loader("xy")
import stepwell
"""

# A model with two optimizers that does as it is told.
_LOOP = """
from stepwell.integrations.accelerate import watch
torch = sys.modules["torch"] = types.ModuleType("torch")
torch.is_grad_enabled = lambda: is_enabled
is_enabled = True
class Model:
    training, fails = True, False
    def __call__(self, batch):
        if self.fails: raise OSError("theirs")
        return batch
class Optimizer:
    fails = False
    def step(self, closure=None):
        if self.fails: raise OSError("theirs")
        if closure is not None: closure()
class Scheduler:
    def step(self): pass
Accelerator.gather = lambda self, tensor: tensor
model, optimizer, other, scheduler = Model(), Optimizer(), Optimizer(), Scheduler()
accelerator._models, accelerator._optimizers, accelerator._schedulers = [model], [optimizer, other], [scheduler]
watched = watch(accelerator, loader, evaluation)
def evaluate():
    global is_enabled
    is_enabled = False
    for batch in evaluation: model(batch)
    is_enabled, model.training = True, False
    for batch in evaluation: model(batch)
    model.training = True
"""


class AccelerateTest(ProductTest):
    def train(self, source: str) -> str:
        return self.run_trial(_ACCELERATE + source)[0]

    def batches(self, name: str) -> "list[int]":
        return sorted(sample.batch for sample in self.samples() if sample.name == name and sample.batch >= 0)

    def test_the_rest_of_an_epoch_that_is_resumed_in_its_middle_has_its_steps(self):
        self.train("""
from stepwell.integrations.accelerate import watch
watched = watch(accelerator, loader, evaluation, batch=2)
for batch in accelerator.skip_first_batches(loader, num_batches=2): accelerator.backward(batch)
for epoch in range(2):
    for batch in loader: accelerator.backward(batch)
for batch in accelerator.skip_first_batches(evaluation, 1): pass
watched.end()
""")
        steps = list(range(2, 12))
        self.assertEqual(steps, self.batches("step"))
        self.assertEqual(steps, self.batches("train_batch/backward"))
        self.assertEqual(steps, self.batches("dataloader_next"))
        # The loader counts none of the rest's.
        self.assertEqual([(2, 0.0), (4, 1.0), (8, 2.0)],
                         sorted((s.batch, s.value) for s in self.samples() if s.name == "epoch"))  # fmt: skip

    def test_an_epoch_that_the_training_says_itself_is_that_one(self):
        self.train("""
from stepwell.integrations.accelerate import watch
watched = watch(accelerator, loader, batch=14)
loader.iteration = 3
for batch in accelerator.skip_first_batches(loader, 2): pass
loader.iteration = 4
for batch in loader: pass
watched.end()
""")
        self.assertEqual([(14, 3.0), (16, 4.0)],
                         sorted((s.batch, s.value) for s in self.samples() if s.name == "epoch"))  # fmt: skip

    def test_windows_of_a_resumed_epoch_count_from_there_and_those_of_later_ones_from_their_begin(self):
        self.train("""
from stepwell.integrations.accelerate import watch
run = stepwell.init(schedule=stepwell.schedule(active=1, repeat=1, per="epoch"))
watched = watch(accelerator, loader, batch=2)
for batch in accelerator.skip_first_batches(loader, 2): pass
for epoch in range(2):
    for batch in loader: pass
watched.end()
""")
        self.assertTrue(self.eventually(lambda: self.batches("step") == [2, 4, 8]), self.batches("step"))

    def test_a_training_step_reaches_from_the_first_pass_to_the_end_of_the_optimizers_step(self):
        self.train(_LOOP + """
for index, batch in enumerate(loader):          # two batches, two evaluations, and then another two
    loss = model(batch)
    accelerator.gather(loss)
    accelerator.backward(loss)
    optimizer.step()
    scheduler.step()
    accelerator.gather(loss)
    if index == 1: evaluate()
evaluate()
watched.end()
""")
        steps = [0, 1, 2, 3]
        for name in ("step", "train_batch", "train_batch/forward", "train_batch/reduce_metrics", "train_batch/backward",
                     "train_batch/optimizer_step", "step_lr_schedulers", "reduce_metrics"):  # fmt: skip
            # The step of the batch in which an evaluation came is over before that.
            self.assertEqual(steps, self.batches(name), name)
        self.assertEqual(4 * 2, self.counts()["forward"], "an evaluation has no training step")
        self.assertEqual([], [name for name in self.counts() if "train_batch/train_batch" in name])

    def test_a_training_step_of_accumulated_gradients_of_two_optimizers_and_of_none(self):
        self.train(_LOOP + """
loader.batches = "abcdefg"
for index, batch in enumerate(loader):
    if index == 0:                              # no update of this batch: till its end
        accelerator.backward(model(batch))
        accelerator.gather(batch)
    elif index == 1:                            # one that does nothing, as where its scaler skips it
        accelerator.backward(model(batch)); optimizer.step()
        accelerator.gather(batch)
    elif index == 2:                            # two updates, one after the other
        accelerator.backward(model(batch)); optimizer.step()
        accelerator.backward(model(batch)); other.step()
    elif index == 3:                            # its update fails, and the training goes on
        optimizer.fails = True
        try: accelerator.backward(model(batch)); optimizer.step()
        except OSError: optimizer.fails = False
        accelerator.gather(batch)
    elif index == 4:                            # its pass does
        model.fails = True
        try: model(batch)
        except OSError: model.fails = False
    elif index == 5:                            # passes within the update
        optimizer.step(lambda: accelerator.backward(model(batch)))
    else: accelerator.backward(model(batch))    # the epoch's last batch has none
accelerator.gather(batch)
watched.end()
""")
        work = list(range(7))
        self.assertEqual(work, self.batches("step"))
        self.assertEqual(work, self.batches("train_batch"))
        self.assertEqual([0, 1, 2, 3, 4, 6], self.batches("train_batch/forward"))
        self.assertEqual([0, 1, 2, 3, 6], self.batches("train_batch/backward"))
        self.assertEqual([1, 2, 3, 5], self.batches("train_batch/optimizer_step"))
        self.assertEqual([0], self.batches("train_batch/reduce_metrics"))
        self.assertEqual([1, 3], self.batches("reduce_metrics"))
        self.assertEqual([5], self.batches("train_batch/optimizer_step/backward"))
        self.assertEqual([(2, 2)], [(s.batch, s.value) for s in self.samples() if s.name == "train_batch.count"])
        self.assertEqual([-1], [s.batch for s in self.samples() if s.name == "reduce_metrics" and s.batch < 0])

    def test_what_is_watched_is_left_alone_again(self):
        out = self.train("""
from stepwell.integrations.accelerate import watch
watched = watch(accelerator, loader)
rest = accelerator.skip_first_batches(loader, 2)
print(list(rest), type(rest) is Loader)
watched.end()
print(list(rest), type(rest) is Loader, type(accelerator) is Accelerator, type(loader) is Loader)
""")
        self.assertEqual("['c', 'd'] False\n['c', 'd'] True True True\n", out)

    def test_a_step_that_the_tracker_is_told_is_the_batch(self):
        self.train("""
from stepwell.integrations.accelerate import StepwellTracker
run = stepwell.init()
tracker = StepwellTracker(run)
for index, batch in run.steps("a", start=7):
    tracker.log({"loss": 1.5, "name": "text"}, step=41)
    tracker.log({"loss": 2.5})
tracker.log({"loss": 3.5}, step=42)
class Tensor:
    def __init__(self, value): self.value = value
    def __index__(self):
        if isinstance(self.value, float): raise TypeError("only integer tensors of a single element can be converted to an index")
        return self.value
for step in (-1, 2**31, 1.5, Tensor(41.0)): tracker.log({"other": 0}, step=step)
tracker.log({"loss": 5.5}, step=Tensor(44))
run.off()
tracker.log({"loss": 4.5}, step=43)
""")
        stored = self.await_counts({"loss": 4, "other": 4, "step": 1, "dataloader_next": 2})
        found = [(sample.batch, sample.value) for sample in stored if sample.name == "loss"]
        self.assertEqual([(7, 2.5), (41, 1.5), (42, 3.5), (44, 5.5)], sorted(found))
        self.assertEqual([-1] * 4, [sample.batch for sample in stored if sample.name == "other"])


if __name__ == "__main__":
    unittest.main()
