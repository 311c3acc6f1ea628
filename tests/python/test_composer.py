"""Composer's events, by their names alone."""

import unittest

from product import ProductTest

# All of Composer's 0.32: those that come in pairs, and those that do not.
PAIRS = [
    ("before_load", "after_load"), ("fit_start", "fit_end"), ("iteration_start", "iteration_end"),
    ("epoch_start", "epoch_end"), ("before_dataloader", "after_dataloader"), ("batch_start", "batch_end"),
    ("before_train_batch", "after_train_batch"), ("before_forward", "after_forward"), ("before_loss", "after_loss"),
    ("before_backward", "after_backward"), ("eval_before_all", "eval_after_all"), ("eval_start", "eval_end"),
    ("eval_batch_start", "eval_batch_end"), ("eval_before_forward", "eval_after_forward"),
    ("eval_standalone_start", "eval_standalone_end"), ("predict_start", "predict_end"),
    ("predict_batch_start", "predict_batch_end"), ("predict_before_forward", "predict_after_forward"),
]  # fmt: skip
ALONE = ["init", "batch_checkpoint", "epoch_checkpoint", "iteration_checkpoint"]
TIMINGS = {
    "load", "fit", "iteration", "epoch", "dataloader", "batch", "train_batch", "forward", "loss", "backward", "eval_all",
    "eval", "eval_batch", "eval_forward", "eval_standalone", "predict", "predict_batch", "predict_forward",
}  # fmt: skip

_COMPOSER = f"""
import stepwell
from types import SimpleNamespace as Made
from stepwell.integrations import composer
before, after = map(list, zip(*{PAIRS!r}))
class Event:
    def __init__(self, value):
        self.value, self.is_before_event, self.is_after_event = value, value in before, value in after
        name = value
        for word in ("before_", "after_", "_start", "_end"): name = name.replace(word, "")
        self.canonical_name = name
class Loader(list): pass
loader = Loader("ab")
state = Made(timestamp=Made(sample=0, batch=0, epoch=0, batch_in_epoch=0), dataloader_len=2, train_dataloader=loader,
             dataloader=loader, callbacks=[], algorithms=[], schedulers=[], device=object())
run = stepwell.init()
watcher = composer._Watcher(run)
def tell(*values):
    for value in values: watcher.on_event(Event(value), state)
"""


class ComposerTest(ProductTest):
    def test_each_pair_of_events_is_a_timing_and_each_other_one_a_moment(self):
        out, _ = self.run_trial(_COMPOSER + f"""
run.instant = lambda name: print(name, end=" ")
tell("init", "before_load", "after_load", "fit_start")
tell(*(value for value in before if value not in ("before_load", "fit_start")))
tell(*(value for value in reversed(after) if value not in ("after_load", "fit_end")))
tell("batch_checkpoint", "epoch_checkpoint", "iteration_checkpoint", "fit_end")
watcher.close()
""")
        self.assertEqual(" ".join(ALONE) + " ", out)
        timed = [sample.name for sample in self.samples() if sample.group == "composer"]
        self.assertEqual(sorted(f"event/{name}" for name in TIMINGS), sorted(timed))

    def test_loaders_of_an_evaluation_are_left_alone_when_it_is_over(self):
        out, _ = self.run_trial(_COMPOSER + """
tell("fit_start")
evaluations = [Loader("xy"), Loader("z")]
for state.dataloader in evaluations:
    tell("eval_start")
    for batch in state.dataloader: pass
    tell("eval_end")
print([type(one) is Loader for one in (*evaluations, loader)])
state.dataloader = loader           # one that is the training's, too
tell("eval_start", "eval_end")
print(type(loader) is Loader)
watcher.close()
print(type(loader) is Loader)
""")
        self.assertEqual("[True, True, False]\nFalse\nTrue\n", out)
        found = [sample for sample in self.samples() if sample.name == "dataloader_next"]
        self.assertEqual(["eval"] * 3, [sample.labels["loader"] for sample in found])

    def test_callbacks_are_timed_before_a_training_and_without_one(self):
        self.run_trial(_COMPOSER + """
import sys, types
class Callback:
    def run_event(self, event, state, logger): getattr(self, event.value, lambda *_: None)(state, logger)
    def init(self, state, logger): pass
    before_load = after_load = eval_standalone_start = eval_end = predict_start = init
sys.modules["composer"] = types.ModuleType("composer")
sys.modules["composer"].Callback = Callback
class Other(Callback):
    def init(self, state, logger): pass
    before_load = after_load = eval_standalone_start = eval_end = predict_start = init
def tell_all(*values):
    for event in map(Event, values):
        watcher.on_event(event, state)
        for one in state.callbacks: one.run_event(event, state, None)
def added(name): return state.callbacks.append(type(name, (Other,), {"init": lambda *_: None, "predict_start": lambda *_: None})())
state.callbacks, state.train_dataloader, state.dataloader = [Other()], None, None
tell_all("init", "before_load", "after_load")
added("BeforeEval")
tell_all("eval_standalone_start", "eval_start", "eval_end", "eval_standalone_end")
added("BeforePredict")
state.dataloader = Loader("x")
tell_all("predict_start", "predict_end")
kinds = [type(one).__name__ for one in state.callbacks]
watcher.close()
""")
        timed = sorted(name for name in self.counts() if name.startswith("callback/"))
        self.assertEqual(
            sorted(["callback/Other/init", "callback/Other/before_load", "callback/Other/after_load",
                    "callback/Other/eval_standalone_start", "callback/Other/eval_end", "callback/Other/predict_start",
                    "callback/BeforeEval/eval_standalone_start", "callback/BeforeEval/eval_end",
                    "callback/BeforeEval/predict_start", "callback/BeforePredict/predict_start"]),
            timed)  # fmt: skip
        self.assertEqual({1}, {self.counts()[name] for name in timed})

    def test_a_prediction_is_an_evaluation_also_by_the_trainings_own_loader(self):
        out, _ = self.run_trial(_COMPOSER + """
state.dataloader = alone = Loader("xyz")
tell("predict_start")
for batch in alone: pass
tell("predict_end")
print(type(alone) is Loader)
state.dataloader = loader
tell("fit_start", "epoch_start")
items = iter(loader)
for batch in range(2):
    tell("before_dataloader"); next(items)
    tell("after_dataloader", "batch_start")
    state.timestamp.batch += 1; state.timestamp.batch_in_epoch += 1
    tell("batch_end")
tell("before_dataloader"); next(items, None); tell("epoch_end", "fit_end")    # nobody tells that it found none
tell("predict_start")
for batch in loader: pass
tell("predict_end")
watcher.close()
print(type(loader) is Loader)
""")
        self.assertEqual("True\nTrue\n", out)
        found = [sample for sample in self.samples() if sample.name == "dataloader_next"]
        self.assertEqual([("eval", -1)] * 5 + [("train", 0), ("train", 1)],
                         sorted((sample.labels["loader"], sample.batch) for sample in found))  # fmt: skip
        self.assertEqual([0, 1], sorted(sample.batch for sample in self.samples() if sample.name == "step"))

    def test_a_training_that_resumes_has_no_fetch_of_the_epochs_before(self):
        """Its trainer asks the loader once for each of them, which turns what shuffles."""
        self.run_trial(_COMPOSER + """
state.timestamp = Made(sample=16, batch=4, epoch=2, batch_in_epoch=0)
tell("fit_start")
for epoch in range(2):
    for batch in loader: break
tell("epoch_start")
items = iter(loader)
for batch in range(2):
    tell("before_dataloader"); next(items)
    tell("after_dataloader", "batch_start")
    state.timestamp.sample += 4; state.timestamp.batch += 1; state.timestamp.batch_in_epoch += 1
    tell("batch_end")
tell("before_dataloader"); next(items, None); tell("epoch_end", "fit_end")
watcher.close()
""")
        found = self.samples()
        for name in ("dataloader_next", "step", "samples_per_second"):
            self.assertEqual([4, 5], sorted(sample.batch for sample in found if sample.name == name), name)
        self.assertEqual([(4, 2.0)], [(sample.batch, sample.value) for sample in found if sample.name == "epoch"])


if __name__ == "__main__":
    unittest.main()
