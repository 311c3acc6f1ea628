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
        self.assertEqual(steps, self.batches("backward"))
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
