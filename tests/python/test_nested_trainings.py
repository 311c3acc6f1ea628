"""Trainings that a callback of another one trains, as a probe of what that has learned: both are whole, and what the outer one had
watched is so until its own end."""

import textwrap
import unittest

from product import ProductTest
from test_interrupted_frameworks import KERAS, LIGHTNING, LIGHTNING_STEPS
from test_left_trainings import WHOLE

# Two epochs of two batches, with another such fit at one of the events: with a callback of its own, or the same.
_CALLBACKS = ("StepwellCallback()", "mine")
_PROBED = KERAS + """
import stepwell
count_anew = lambda: None
class Inner(Callback):
    def on_train_batch_end(self, batch, logs=None): pass
inner = Inner()
def probe(*_, logs=None): fit([inner, PROBED], 0)
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

    def fit(self, event: str, order: str, probed: str) -> None:
        self.shown = "".join(c if c.isalnum() or c in "._" else "-" for c in f"{self.trial}.{order}.{probed}")[-200:]
        source = _PROBED.replace("EVENT", repr(event)).replace("ORDER", f"[{order}]").replace("PROBED", probed)
        out, err = self.run_trial(source, variables={"STEPWELL_TRIAL": self.shown})
        self.assertEqual("True True\n", out, err)
        self.assertNotIn("is not recorded", err)
        self.assertEqual([-1], [sample.batch for sample in self.samples(self.shown) if sample.name == "after"])

    def test_one_between_two_epochs_has_steps_and_the_outer_one_goes_on_behind_them(self):
        for order, probed in ((order, probed) for order in ("mine, Probe()", "Probe(), mine") for probed in _CALLBACKS):
            with self.subTest(order, probed=probed):
                self.fit("on_epoch_end", order, probed)
                for name in ("step", "dataloader_next", "train_batch"):
                    self.assertEqual(list(range(12)), self.batches(name), name)
                self.assertEqual([0, 1, 6, 7], self.batches("callback/Other/on_train_batch_end"))
                self.assertEqual([2, 3, 4, 5, 8, 9, 10, 11], self.batches("callback/Inner/on_train_batch_end"))
                self.assertEqual([(0, 0.0), (2, 0.0), (4, 1.0), (6, 1.0), (8, 0.0), (10, 1.0)],
                                 sorted((s.batch, s.value) for s in self.samples(self.shown) if s.name == "epoch"))  # fmt: skip

    def test_one_between_two_batches_loses_none(self):
        for probed in _CALLBACKS:
            with self.subTest(probed):
                self.fit("on_train_batch_end", "mine, Probe()", probed)
                for name in ("step", "train_batch", "samples_per_second"):
                    self.assertEqual(list(range(20)), self.batches(name), name)
                self.assertEqual([0, 5, 10, 15], self.batches("callback/Other/on_train_batch_end"))
                # How long the outer one waited for a batch that was fetched beside another training nobody knows.
                known = [batch for batch in range(20) if batch not in (5, 15)]
                self.assertEqual(known, self.batches("dataloader_next", loader="train"))
                # Each batch behind another training's tells its own.
                epochs = sorted((s.batch, s.value) for s in self.samples(self.shown) if s.name == "epoch")
                self.assertEqual([(0, 0), (1, 0), (3, 1), (5, 0), (6, 0), (8, 1), (10, 1), (11, 0), (13, 1), (15, 1), (16, 0),
                                  (18, 1)], epochs)  # fmt: skip

    def test_one_within_a_batch_is_a_part_of_it(self):
        for probed in _CALLBACKS:
            with self.subTest(probed):
                self.fit("on_train_batch_end", "Probe(), mine", probed)
                for name in ("step", "train_batch", "samples_per_second", "callback/Other/on_train_batch_end"):
                    self.assertEqual([0, 1, 2, 3], self.batches(name), name)
                self.assertEqual([0, 1, 2, 3], self.batches("dataloader_next", loader="train"))
                self.assertEqual([(0, 0.0), (2, 1.0)],
                                 sorted((s.batch, s.value) for s in self.samples(self.shown) if s.name == "epoch"))  # fmt: skip

    def test_one_that_fails_with_the_same_callback_leaves_the_outer_one_its_own(self):
        """The outer one's callback goes on."""
        self.shown = self.trial
        out, err = self.run_trial(_PROBED.split("run = stepwell.init")[0].replace("EVENT", "'on_epoch_end'") + textwrap.dedent("""
            class Fails(Callback):
                def on_train_batch_end(self, batch, logs=None): raise OSError("theirs")
            kept = []
            def probe(*_, logs=None):
                try: fit([inner, mine, Fails()], 0)
                except OSError as error: kept.append(error)
            Probe.on_epoch_end = probe
            run = stepwell.init(hooks=False)
            fit([other, mine, Probe()], 0)
            print(type(other) is Other, type(inner) is Inner, mine._stepwell.around)
            with run.scope("after"): pass
            """))
        self.assertEqual("True True None\n", out, err)
        for name in ("step", "train_batch", "dataloader_next"):
            self.assertEqual([0, 1, 2, 3, 4, 5], self.batches(name), name)
        self.assertEqual([0, 1, 3, 4], self.batches("callback/Other/on_train_batch_end"))
        self.assertEqual([2, 5], self.batches("callback/Inner/on_train_batch_end"))
        self.assertEqual([(0, 0.0), (2, 0.0), (3, 1.0), (5, 0.0)],
                         sorted((s.batch, s.value) for s in self.samples() if s.name == "epoch"))  # fmt: skip
        self.assertEqual([-1], [sample.batch for sample in self.samples() if sample.name == "after"])

    def test_a_call_that_is_over_is_none_that_another_in_its_place_goes_on_with(self):
        """Left in its batch, with its callback still there; one that we are not told of trains a probe from where it lay."""
        self.shown = self.trial
        out, err = self.run_trial(_PROBED.split("run = stepwell.init")[0].replace("EVENT", "'on_epoch_end'") + textwrap.dedent("""
            places = []
            class Notes(Callback):
                def on_train_begin(self, logs=None):
                    frame = sys._getframe(1)
                    while frame.f_code.co_name != "fit": frame = frame.f_back
                    places.append(id(frame))
            class Fails(Notes):
                def on_train_batch_end(self, batch, logs=None): raise OSError("theirs")
            class Probes(Notes):
                def on_epoch_end(self, epoch, logs=None):
                    if places[-1] == places[0] and epoch == 0: fit([inner, StepwellCallback()], 0)
            run = stepwell.init(hooks=False)
            try: fit([other, Fails(), mine], 0)
            except OSError: pass
            for _ in range(100):                        # until it has the place of the one before
                fit([Probes()], 0)
                if places[-1] == places[0]: break
            print(places[-1] == places[0], type(other) is Other, type(inner) is Inner)
            """))
        if out == "False True True\n":
            self.skipTest("no frame lay where the first one's did, in 100 tries")
        self.assertEqual("True True True\n", out, err)
        for name in ("step", "train_batch", "callback/Inner/on_train_batch_end"):
            self.assertEqual(4, len(self.batches(name)), name)

    def test_whether_a_call_goes_on_is_known_of_its_own_thread(self):
        """A framework that tells of events from another thread ends nothing by it."""
        out, err = self.run_trial("""
            import threading, stepwell
            from stepwell.integrations import _calls
            from stepwell.integrations._training import Training
            run = stepwell.init(hooks=False)
            one, seen = Training(), []
            def ask(deep=0):
                if deep: return ask(deep - 1)
                there = _calls.frames()
                seen.append((one.goes_on(), _calls.goes_on(one._call, there), _calls.is_within(one._call)))
            def ask_elsewhere():
                thread = threading.Thread(target=ask)
                thread.start(); thread.join()
            def fit(): one.train_begins(); ask(); ask(50); ask_elsewhere()
            def outer(): fit(); ask()
            ask()
            outer()
            ask()
            ask_elsewhere()
            print(*seen, sep="\\n")
            """)
        no, yes, elsewhere = "(False, False, False)", "(True, True, True)", "(True, False, False)"
        self.assertEqual([no, yes, yes, elsewhere, no, no, elsewhere], out.splitlines(), err)

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
    def batches(self, name: str, trial: "str | None" = None) -> "list[int]":
        return sorted(sample.batch for sample in self.samples(trial) if sample.name == name and sample.batch >= 0)

    def test_one_between_two_steps_leaves_the_outer_one_its_watches(self):
        for probed in _CALLBACKS:
            with self.subTest(probed):
                trial = f"{self.trial}.{probed[:4]}"
                out, err = self.run_trial(WHOLE + f"""
from stepwell.integrations.transformers import StepwellCallback
import stepwell
run, other, mine = stepwell.init(hooks=False), Other(), StepwellCallback()
class Probe(Callback):
    def on_step_end(self, args, state, *_, **__):
        if state.global_step != 2: return
        inner = Whole()
        inner.add_callback({probed})
        inner.train()
outer = Whole()
for one in (mine, other, Probe()): outer.add_callback(one)
outer.train()
print(module.skip_first_batches is skip_first_batches, data_loader.send_to_device is send_to_device, type(other) is Other)
with run.scope("after"): pass
""", variables={"STEPWELL_TRIAL": trial})  # fmt: skip
                self.assertEqual("True True True\n", out, err)
                for name in ("step", "dataloader_next", "to_device", "train_batch"):
                    self.assertEqual([0, 0, 1, 1, 2, 2, 3, 3], self.batches(name, trial), name)
                self.assertEqual([0, 1, 2, 3], self.batches("callback/Other/on_step_end", trial))
                self.assertEqual([-1], [s.batch for s in self.samples(trial) if s.name == "after"])

    def test_one_of_another_framework_leaves_the_outer_one_its_watches(self):
        """Their calls that train have other names."""
        source = f"keras = {{}}\nexec({KERAS!r}, keras)\nkeras['count_anew'] = lambda: None\n" + WHOLE + """
from stepwell.integrations.transformers import StepwellCallback
import stepwell
run, other = stepwell.init(hooks=False), Other()
"""
        with self.subTest("Keras within the Trainer"):
            out, err = self.run_trial(source + """
class Probe(Callback):
    def on_step_end(self, args, state, *_, **__):
        if state.global_step == 2: keras["fit"]([keras["StepwellCallback"]()], 0)
outer = Whole()
for one in (StepwellCallback(), other, Probe()): outer.add_callback(one)
outer.train()
print(module.skip_first_batches is skip_first_batches, data_loader.send_to_device is send_to_device, type(other) is Other)
""")
            self.assertEqual("True True True\n", out, err)
            for name in ("step", "dataloader_next", "train_batch"):
                self.assertEqual([0, 1, 2, 2, 3, 3, 4, 5], self.batches(name), name)
            for name in ("to_device", "callback/Other/on_step_end"):
                self.assertEqual([0, 1, 2, 3], self.batches(name), name)
        with self.subTest("the Trainer within Keras"):
            trial = f"{self.trial}.other"
            out, err = self.run_trial(source + """
class Probe(keras["Callback"]):
    def on_epoch_end(self, epoch, logs=None):
        inner = Whole()
        inner.add_callback(StepwellCallback())
        inner.train()
watched = keras["Other"]()
keras["fit"]([watched, keras["StepwellCallback"](), Probe()], 0)
print(module.skip_first_batches is skip_first_batches, type(watched) is keras["Other"])
""", variables={"STEPWELL_TRIAL": trial})
            self.assertEqual("True True\n", out, err)
            for name in ("step", "dataloader_next", "train_batch"):
                self.assertEqual([0, 0, 0, 1, 1, 1, 2, 2, 3, 3, 4, 5], self.batches(name, trial), name)
            self.assertEqual([0, 1, 4, 5], self.batches("callback/Other/on_train_batch_end", trial))


class LightningTest(ProductTest):
    def test_one_between_two_epochs_with_the_same_callback_or_profiler_leaves_the_outer_one_its_own(self):
        of = LIGHTNING.replace("PACKAGE", "pytorch_lightning").replace("CALLBACKS, PROFILER", "[], None")
        for name, callback, profiler in (("callback", "StepwellCallback()", "None"), ("profiler", "Callback()", "StepwellProfiler()"),
                                         ("both", "StepwellCallback()", "StepwellProfiler()")):  # fmt: skip
            with self.subTest(name):
                trial = f"{self.trial}.{name}"
                out, err = self.run_trial(of + f"""
import stepwell
run, mine, profiler = stepwell.init(hooks=False), {callback}, {profiler}
class Probe(Callback):
    def on_validation_start(self, *_): Trainer([mine], profiler).fit(100 + 10 * outer.current_epoch)
own = Profiler()
outer = Trainer([Other(), mine, Probe()], profiler or own)
outer.fit(0)
print(outer.profiler is (profiler or own), len(outer.callbacks), *([profiler._stepwell.around] if profiler else []))
with run.scope("after"): pass
""", variables={"STEPWELL_TRIAL": trial})  # fmt: skip
                self.assertEqual("True 3 None\n" if profiler != "None" else "True 3\n", out, err)
                found = self.samples(trial)
                for timing in LIGHTNING_STEPS:
                    batches = sorted(s.batch for s in found if s.name == timing and s.batch >= 0)
                    inner = [] if timing.startswith("callback/") else [*range(100, 104), *range(110, 114)]
                    self.assertEqual([*range(4), *inner], batches, timing)
                self.assertEqual([-1], [s.batch for s in found if s.name == "after"])


if __name__ == "__main__":
    unittest.main()
