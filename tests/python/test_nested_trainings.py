"""Trainings that a callback of another one trains, as a probe of what that has learned: both are whole, and what the outer one had
watched is so until its own end."""

import textwrap
import unittest

from product import ProductTest
from test_interrupted_frameworks import KERAS
from test_left_trainings import WHOLE

# Two epochs of two batches, with another such fit at one of the events.
_PROBED = KERAS + """
import stepwell
count_anew = lambda: None
class Inner(Callback):
    def on_train_batch_end(self, batch, logs=None): pass
inner = Inner()
def probe(*_, logs=None): fit([inner, StepwellCallback()], 0)
class Probe(Callback): pass
setattr(Probe, EVENT, probe)
run = stepwell.init(hooks=False)
fit([other, *ORDER], 0)
print(type(other) is Other, type(inner) is Inner)
with run.scope("after"): pass
"""


class KerasTest(ProductTest):
    def batches(self, name: str, **labels: str) -> "list[int]":
        return sorted(sample.batch for sample in self.samples(self.shown)
                      if sample.name == name and sample.batch >= 0 and labels.items() <= sample.labels.items())  # fmt: skip

    def fit(self, event: str, order: str) -> None:
        self.shown = "".join(c if c.isalnum() or c in "._" else "-" for c in f"{self.trial}.{order}")[-200:]
        source = _PROBED.replace("EVENT", repr(event)).replace("ORDER", f"[{order}]")
        out, err = self.run_trial(source, variables={"STEPWELL_TRIAL": self.shown})
        self.assertEqual("True True\n", out, err)
        self.assertNotIn("is not recorded", err)
        self.assertEqual([-1], [sample.batch for sample in self.samples(self.shown) if sample.name == "after"])

    def test_one_between_two_epochs_has_steps_and_the_outer_one_goes_on_behind_them(self):
        for order in ("mine, Probe()", "Probe(), mine"):
            with self.subTest(order):
                self.fit("on_epoch_end", order)
                for name in ("step", "dataloader_next", "train_batch"):
                    self.assertEqual(list(range(12)), self.batches(name), name)
                self.assertEqual([0, 1, 6, 7], self.batches("callback/Other/on_train_batch_end"))
                self.assertEqual([2, 3, 4, 5, 8, 9, 10, 11], self.batches("callback/Inner/on_train_batch_end"))
                self.assertEqual([(0, 0.0), (2, 0.0), (4, 1.0), (6, 1.0), (8, 0.0), (10, 1.0)],
                                 sorted((s.batch, s.value) for s in self.samples(self.shown) if s.name == "epoch"))  # fmt: skip

    def test_one_between_two_batches_loses_none(self):
        self.fit("on_train_batch_end", "mine, Probe()")
        for name in ("step", "train_batch", "samples_per_second"):
            self.assertEqual(list(range(20)), self.batches(name), name)
        self.assertEqual([0, 5, 10, 15], self.batches("callback/Other/on_train_batch_end"))
        # How long the outer one waited for a batch that was fetched beside another training nobody knows.
        self.assertEqual([batch for batch in range(20) if batch not in (5, 15)], self.batches("dataloader_next", loader="train"))

    def test_one_within_a_batch_is_a_part_of_it(self):
        self.fit("on_train_batch_end", "Probe(), mine")
        for name in ("step", "train_batch", "samples_per_second", "callback/Other/on_train_batch_end"):
            self.assertEqual([0, 1, 2, 3], self.batches(name), name)
        self.assertEqual([0, 1, 2, 3], self.batches("dataloader_next", loader="train"))
        self.assertEqual([(0, 0.0), (2, 1.0)],
                         sorted((s.batch, s.value) for s in self.samples(self.shown) if s.name == "epoch"))  # fmt: skip

    def test_one_after_an_outer_one_that_an_exception_left_is_whole(self):
        """The exception passes through both, and is kept."""
        self.shown = self.trial
        out, err = self.run_trial(_PROBED.split("run = stepwell.init")[0].replace("EVENT", "'on_epoch_end'") + textwrap.dedent("""
            class Fails(Callback):
                def on_train_batch_end(self, batch, logs=None): raise OSError("theirs")
            def probe(*_, logs=None): fit([inner, StepwellCallback(), Fails()], 0)
            Probe.on_epoch_end = probe
            run = stepwell.init(hooks=False)
            try: fit([other, mine, Probe()], 0)
            except OSError as error: kept = error
            assert type(other) is not Other and type(inner) is not Inner
            last = Other()
            fit([last, StepwellCallback()], 0)
            print(type(other) is Other, type(inner) is Inner, type(last) is Other)
            with run.scope("after"): pass
            """))
        self.assertEqual("True True True\n", out, err)
        self.assertEqual([0, 1, 2, 3, 4, 5, 6], self.batches("step"))
        self.assertEqual([0, 1, 3, 4, 5, 6], self.batches("callback/Other/on_train_batch_end"))
        self.assertEqual([-1], [sample.batch for sample in self.samples() if sample.name == "after"])


class TrainerTest(ProductTest):
    def test_one_between_two_steps_leaves_the_outer_one_its_watches(self):
        out, err = self.run_trial(WHOLE + """
from stepwell.integrations.transformers import StepwellCallback
import stepwell
run, other = stepwell.init(hooks=False), Other()
class Probe(Callback):
    def on_step_end(self, args, state, *_, **__):
        if state.global_step != 2: return
        inner = Whole()
        inner.add_callback(StepwellCallback())
        inner.train()
outer = Whole()
for one in (StepwellCallback(), other, Probe()): outer.add_callback(one)
outer.train()
print(module.skip_first_batches is skip_first_batches, data_loader.send_to_device is send_to_device, type(other) is Other)
with run.scope("after"): pass
""")
        self.assertEqual("True True True\n", out, err)
        found = self.samples()
        for name in ("step", "dataloader_next", "to_device", "train_batch"):
            self.assertEqual([0, 0, 1, 1, 2, 2, 3, 3], sorted(s.batch for s in found if s.name == name and s.batch >= 0), name)
        self.assertEqual([0, 1, 2, 3], sorted(s.batch for s in found if s.name == "callback/Other/on_step_end"))
        self.assertEqual([-1], [s.batch for s in found if s.name == "after"])


if __name__ == "__main__":
    unittest.main()
