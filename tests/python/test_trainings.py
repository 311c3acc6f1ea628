"""Trainings that the modules of frameworks tell of: their epochs, copies and classes, without a framework."""

import unittest

from product import ProductTest
from test_interrupted_frameworks import KERAS


class TellingTest(ProductTest):
    def batches(self, name: str) -> "list[int]":
        return sorted(sample.batch for sample in self.samples() if sample.name == name and sample.batch >= 0)

    def test_a_schedule_per_epoch_follows_who_tells_no_place_in_it(self):
        self.run_trial("""
            import stepwell
            from stepwell.integrations.deepspeed import watch
            run = stepwell.init(schedule=stepwell.schedule(wait=1, warmup=0, active=1, repeat=1, per="epoch"))
            class Loader(list): pass
            class Engine:
                training, micro_steps, lr_scheduler, monitor = True, 0, None, None
                training_dataloader = Loader("abc")
                def forward(self, batch): return batch
                def backward(self, loss): pass
                def step(self): self.micro_steps += 1
            engine = Engine()
            watched = watch(engine)
            for epoch in range(3):
                for batch in engine.training_dataloader:
                    engine.backward(engine.forward(batch)); engine.step()
            watched.end()
            """)
        # A run that ends while it is off waits for nothing.
        self.assertTrue(self.eventually(lambda: self.batches("step") == [1, 4, 7]), self.batches("step"))

    def test_an_engine_that_resumes_has_true_batches_and_epochs(self):
        """DeepSpeed's checkpoints have `global_steps`, of the optimizer, and no `micro_steps`."""
        source = """
            from stepwell.integrations.deepspeed import watch
            class Loader(list): pass
            class Engine:
                training, micro_steps, global_steps, lr_scheduler, monitor = True, 0, 0, None, None
                training_dataloader = Loader("abcd")
                def gradient_accumulation_steps(self): return 2
                def managed_gradient_accumulation(self): return MANAGED
                def load_checkpoint(self, steps): self.global_steps = steps
                def forward(self, batch): return batch
                def backward(self, loss): pass
                def step(self):
                    self.micro_steps += 1
                    if not MANAGED or self.micro_steps % 2 == 0: self.global_steps += 1
            engine = Engine()
            watched = watch(engine, epoch=3)
            engine.load_checkpoint(6)
            for epoch in range(2):
                for batch in engine.training_dataloader:
                    engine.backward(engine.forward(batch)); engine.step()
            watched.end()
            for wrong in (-1, "3", True):
                try: watch(engine, epoch=wrong)
                except (TypeError, ValueError) as error: print(error)
            watch(engine).end()
            """
        for managed, first in ((True, 12), (False, 6)):
            with self.subTest(managed=managed):
                trial = f"{self.trial}.{first}"
                out, _ = self.run_trial(source.replace("MANAGED", str(managed)), variables={"STEPWELL_TRIAL": trial})
                self.assertEqual(3, out.count("stepwell: epoch is "), out)
                found = self.samples(trial)
                for name in ("step", "train_batch", "dataloader_next"):
                    self.assertEqual(list(range(first, first + 8)), sorted(s.batch for s in found if s.name == name), name)
                self.assertEqual([(first, 3.0), (first + 4, 4.0)],
                                 sorted((s.batch, s.value) for s in found if s.name == "epoch"))  # fmt: skip

    def test_an_engine_that_goes_back_to_a_checkpoint_has_true_batches(self):
        """In the same process: `load_checkpoint()` leaves `micro_steps` as it is."""
        self.run_trial("""
            from stepwell.integrations.deepspeed import watch
            class Loader(list): pass
            class Engine:
                training, micro_steps, global_steps, lr_scheduler, monitor = True, 0, 0, None, None
                training_dataloader = Loader("abcd")
                def gradient_accumulation_steps(self): return 2
                def managed_gradient_accumulation(self): return True
                def load_checkpoint(self, steps=None):
                    if steps is not None: self.global_steps = steps
                def forward(self, batch): return batch
                def backward(self, loss): pass
                def step(self):
                    self.micro_steps += 1
                    if self.micro_steps % 2 == 0: self.global_steps += 1
            engine = Engine()
            watched = watch(engine)
            def fit():
                for batch in engine.training_dataloader: engine.backward(engine.forward(batch)); engine.step()
            fit(); fit()
            engine.load_checkpoint(); fit()             # of the module alone
            engine.load_checkpoint(2); fit()            # after the first epoch
            engine.load_checkpoint(50); fit()
            watched.end()
            print(type(engine) is Engine)
            """)
        for name in ("step", "train_batch", "dataloader_next"):
            self.assertEqual(sorted([*range(12), *range(4, 8), *range(100, 104)]), self.batches(name), name)

    def test_several_passes_are_one_training_step(self):
        self.run_trial("""
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
            for batch in engine.training_dataloader:
                engine.backward((engine.forward(batch), engine.forward(batch))); engine.step()
            watched.end()
            """)
        names = {sample.name for sample in self.samples() if sample.group == "timing"}
        self.assertEqual({"step", "dataloader_next", "train_batch", "train_batch/forward", "train_batch/forward.count",
                          "train_batch/backward", "train_batch/optimizer_step"}, names)  # fmt: skip
        self.assertEqual([0, 1, 2], self.batches("train_batch"))

    def test_copies_of_what_was_used_are_unused(self):
        out, err = self.run_trial("""
            import copy, pickle, sys, types
            composer, keras = types.ModuleType("composer"), types.ModuleType("keras")
            keras.callbacks = types.ModuleType("keras.callbacks")
            transformers = types.ModuleType("transformers")
            class Callback:
                def set_params(self, params): pass
                def on_train_begin(self, logs=None): pass
            composer.Callback = keras.callbacks.Callback = transformers.TrainerCallback = Callback
            sys.modules.update({"composer": composer, "keras": keras, "keras.callbacks": keras.callbacks,
                                "transformers": transformers})
            import stepwell
            from stepwell.integrations import composer as of_composer, keras as of_keras, transformers as of_transformers
            from stepwell.integrations.pytorch import TrainingLoop
            run = stepwell.init()
            loop = TrainingLoop(run)
            loop.mine = "kept"
            for index, batch in loop.steps("ab", epoch=0):
                with loop.train_batch: pass
                for copied in (copy.copy(loop), copy.deepcopy(loop), pickle.loads(pickle.dumps(loop))):
                    assert copied.mine == "kept" and copied._training is not loop._training
            with copied.to_device: pass
            for index, batch in copied.steps("ab", epoch=1): pass
            from stepwell.integrations.lightning import Actions
            actions = Actions(run)
            actions.where = lambda: {"batch": 0, "epoch": 0}
            actions.start("run_training_epoch"); actions.start("[_TrainingEpochLoop].train_dataloader_next")
            for copied in (copy.deepcopy(actions), pickle.loads(pickle.dumps(actions))):
                assert copied.where is None and copied.training is not actions.training
            actions.stop("[_TrainingEpochLoop].train_dataloader_next"); actions.training.finish()
            callbacks = [of_keras.StepwellCallback(run, 4), of_composer.StepwellCallback(), of_transformers.StepwellCallback(run)]
            class Loader(list): pass
            loader = Loader("ab")
            callbacks[0].set_params({"steps": 2}); callbacks[0].on_train_begin()
            callbacks[0].on_epoch_begin(0); callbacks[0].on_train_batch_begin(0)
            from stepwell.integrations._watch import watch_loader
            for one in callbacks:
                watches = getattr(one._stepwell, "watches", None) or one._stepwell._watches
                watches.add(watch_loader(Loader("ab"), lambda: None, lambda *_: None))
                for copied in (copy.deepcopy(one), pickle.loads(pickle.dumps(one))):
                    assert type(copied) is type(one) and not copied._stepwell.training._open, one
            """)
        self.assertEqual([0, 1, 2, 3], self.batches("step")[:4], err)

    def test_epochs_that_keras_trains_once_more_have_numbers_behind_those_of_the_first_time(self):
        self.run_trial("""
            from stepwell.integrations.keras import _Watcher
            kept, other = _Watcher(None, None), _Watcher(None, None)
            def fit(watcher, *epochs):
                watcher.steps = 2
                watcher.train_begins()
                for epoch in epochs:
                    watcher.epoch_begins(epoch)
                    for batch in range(2): watcher.batch_begins(batch); watcher.batch_ends(batch)
                    watcher.epoch_ends()
                watcher.train_ends()
            fit(kept, 0, 1)         # 0 ... 3
            fit(kept, 2)            # goes on: 4, 5
            fit(kept, 0, 1)         # once more: 6 ... 9
            fit(other, 1)           # another one's: 10, 11
            fit(other, 10)          # says more: 20, 21
            """)
        wanted = [*range(12), 20, 21]
        for name in ("step", "train_batch"):
            self.assertEqual(wanted, self.batches(name), name)
        self.assertEqual([0, 2, 4, 6, 8, 10, 20], self.batches("epoch"))

    def test_a_class_that_hears_of_its_children_hears_nothing_of_ours(self):
        out, err = self.run_trial("""
            import abc
            from stepwell.integrations._watch import watch_call
            class Kept:
                heard = []
                def __init_subclass__(kind, **more): Kept.heard.append(kind.__name__)
                def call(self): return "called"
            class Child(Kept): pass
            class Refusing(Kept):
                def __init_subclass__(kind): raise TypeError("final")
            class Listing(type):
                listed = []
                def __new__(meta, name, bases, inside):
                    meta.listed.append(name)
                    return super().__new__(meta, name, bases, inside)
                def __init__(kind, name, bases, inside): kind.listed.append(name)
            class Listed(metaclass=Listing):
                def call(self): return "called"
            class Abstract(abc.ABC):
                @abc.abstractmethod
                def call(self): pass
            class Real(Abstract):
                def call(self): return "called"
            before = list(Kept.heard), list(Listing.listed)
            calls = []
            for kind in (Kept, Child, Refusing, Listed, Real):
                own = dict(vars(kind))
                owner = kind()
                restore = watch_call(owner, "call", lambda: calls.append(kind.__name__), lambda: None)
                print(owner.call(), isinstance(owner, kind), restore(), type(owner) is kind, dict(vars(kind)) == own)
            print(before == (Kept.heard, Listing.listed), *calls)
            class Later(Child): pass
            print(Kept.heard[-1])
            """)
        self.assertEqual("called True None True True\n" * 5 + "True Kept Child Refusing Listed Real\nLater\n", out, err)
        self.assertNotIn("not recorded", err)

    def test_an_evaluation_after_a_step_of_transformers_lies_in_none(self):
        self.run_trial("""
            from types import SimpleNamespace as Made
            from stepwell.integrations import transformers
            watcher = transformers._Watcher(None)
            state = Made(global_step=0, epoch=0)
            watcher.train_begins(state, None, None)
            for step in range(4):
                state.global_step = step
                watcher.step_begins(state)
                watcher.step_ends(Made(should_evaluate=step == 1, should_save=step == 2))
                if step in (1, 2): watcher.training.run.record(f"after {step}", 1)
            watcher.train_ends()
            """)
        self.assertEqual([0, 1, 2, 3], self.batches("step"))
        self.assertEqual({"after 1": -1, "after 2": -1},
                         {sample.name: sample.batch for sample in self.samples() if sample.name.startswith("after")})  # fmt: skip

    def test_a_loop_that_is_dropped_leaves_the_step_of_one_that_began_after_it_alone(self):
        self.run_trial("""
            from stepwell.integrations.pytorch import TrainingLoop
            training = TrainingLoop()
            older = training.steps("abc", epoch=0)
            next(older)
            for index, batch in training.steps("xyz", epoch=1):
                if batch == "x": older.close()
                with training.train_batch: pass
            for index, batch in training.steps("de", epoch=2):
                if batch == "e": break      # one that is left itself still counts none
            """)
        self.assertEqual([0, 1, 2, 3, 4], self.batches("step"))
        self.assertEqual([1, 2, 3], self.batches("train_batch"))
        self.assertEqual([(0, 0.0), (1, 1.0), (4, 2.0)],
                         sorted((s.batch, s.value) for s in self.samples() if s.name == "epoch"))  # fmt: skip


# Hugging Face's Trainer, of little.
_TRAINER = """
import sys, types
from types import SimpleNamespace as Made
transformers = types.ModuleType("transformers")
class Callback: pass
transformers.TrainerCallback = Callback
sys.modules["transformers"] = transformers
class Loader(list): pass
class Trainer:
    def __init__(self):
        self.callback_handler, self.loaders = Made(callbacks=[]), []
    def add_callback(self, callback): self.callback_handler.callbacks.append(callback)
    def get_eval_dataloader(self):
        self.loaders.append(Loader("xy"))
        return self.loaders[-1]
    def prediction_step(self): pass
    def evaluate(self):
        for batch in self.get_eval_dataloader(): self.prediction_step()
    def train(self):
        state, control, loader = Made(global_step=0, epoch=0), Made(), Loader("ab")
        (callback,) = self.callback_handler.callbacks
        callback.on_train_begin(None, state, control, train_dataloader=loader)
        for batch in loader:
            callback.on_step_begin(None, state, control)
            state.global_step += 1
            callback.on_step_end(None, state, control)
        callback.on_epoch_end(None, state, control); callback.on_train_end(None, state, control)
import stepwell
from stepwell import _run
from stepwell.integrations.transformers import watch
trainer = Trainer()
"""


class ClosedRunTest(ProductTest):
    """A watched training whose run was closed."""

    def test_an_evaluation_after_its_run_was_closed_opens_none_and_a_training_does(self):
        out, _ = self.run_trial(_TRAINER + """
with stepwell.init() as run:
    watch(trainer)
    trainer.train(); trainer.evaluate()
trainer.evaluate()
another = Trainer()
watch(another)
another.evaluate()
from stepwell.integrations.keras import _Watcher
from stepwell.integrations.lightning import Actions
_Watcher(None, None).eval_begins()
actions = Actions()
actions.begin("test", None)
for told in (actions.start, actions.stop): told("[_EvaluationLoop].test_next")
print(_run._run is run, run.state)
with stepwell.init(trial=run.trial + ".second") as second: trainer.evaluate()
trainer.evaluate()
print(_run._run is second)
trainer.train()
print(_run._run is second, _run._run.state)
""")
        self.assertEqual("True closed\nTrue\nFalse recording\n", out)
        # The last training's run has the name of the first one's.
        evaluated = [[s.labels["loader"] for s in self.samples(trial) if s.name == "dataloader_next"].count("eval")
                     for trial in (self.trial, self.trial + ".second")]  # fmt: skip
        self.assertEqual([2, 2], evaluated)
        self.assertEqual([0, 0, 1, 1], sorted(s.batch for s in self.samples() if s.name == "step"))

    def test_what_is_watched_of_an_evaluation_is_left_alone_again(self):
        out, _ = self.run_trial(_TRAINER + """
watched = watch(trainer)
watch(trainer)
for _ in range(2): trainer.train(); trainer.evaluate()
print([type(loader) is Loader for loader in trainer.loaders], type(trainer) is Trainer)
watched.end()
trainer.evaluate()
print(type(trainer) is Trainer, len(trainer.callback_handler.callbacks))
""")
        self.assertEqual("[True, True] False\nTrue 1\n", out)
        self.assertEqual(4, self.counts().get("eval_batch"))


class EvaluationTest(ProductTest):
    """By itself: what is timed of it, and of the callbacks beside ours."""

    def assert_evaluated(self, counts: "dict[str, int]") -> None:
        self.assertEqual(counts, self.counts())
        self.assertEqual({"eval"}, {s.labels["loader"] for s in self.samples() if s.name == "dataloader_next"})
        self.assertEqual({-1}, {s.batch for s in self.samples()})

    def test_of_the_trainer(self):
        out, err = self.run_trial(_TRAINER + """
for name in ("on_evaluate", "on_predict", "on_log"): setattr(Callback, name, lambda self, *_, **__: None)
class Other(Callback):
    def on_evaluate(self, *_, **__): pass
    def on_predict(self, *_, **__): pass
class Whole(Trainer):
    def __init__(self):
        super().__init__()
        self.gather_function = self.gather = lambda tensor: tensor
    def get_test_dataloader(self, data): return Loader(data)
    def run(self, loader, event):
        for batch in loader: self.prediction_step(); self.gather_function(batch)
        self.gather_function = self.gather          # as it does after each
        for one in self.callback_handler.callbacks: getattr(one, event)(None, None, None)
    def evaluate(self): self.run(self.get_eval_dataloader(), "on_evaluate")
    def predict(self, data): self.run(self.get_test_dataloader(data), "on_predict")
trainer, other = Whole(), Other()
trainer.add_callback(other)
gather = trainer.gather
watched = watch(trainer)
trainer.evaluate(); trainer.predict("z"); trainer.predict("z")
print(type(other) is Other, type(trainer) is Whole, end=" ")
watched.end()
trainer.evaluate(); trainer.predict("z")
print(type(trainer) is Whole, trainer.gather_function is gather)
""")
        self.assertEqual("True False True True\n", out, err)
        self.assert_evaluated({"dataloader_next": 4, "eval_batch": 4, "reduce_metrics": 4, "callback/Other/on_evaluate": 1,
                               "callback/Other/on_predict": 2})  # fmt: skip

    def test_of_keras(self):
        out, err = self.run_trial(KERAS + """
for name in ("begin", "end", "batch_begin", "batch_end"):
    setattr(Callback, "on_predict_" + name, lambda self, *_, logs=None: None)
class Mine(Callback):
    def on_test_end(self, logs=None): pass
    def on_predict_batch_end(self, batch, logs=None): pass
ours, theirs = mine, Mine()
def run(kind, is_left=False):
    together = Together([theirs, ours])
    together.tell(kind + "_begin")
    for batch in range(2): together.tell(kind + "_batch_begin", batch); together.tell(kind + "_batch_end", batch)
    if not is_left: together.tell(kind + "_end")
run("test"); run("predict")
print(type(theirs) is Mine, end=" ")
run("test", True)               # as Ctrl-C leaves it
run("test")
print(type(theirs) is Mine)
""")
        self.assertEqual("True True\n", out, err)
        # That it was left in its third fetch tells nobody.
        self.assert_evaluated({"dataloader_next": 8, "eval_batch": 8, "callback/Mine/on_test_end": 2,
                               "callback/Mine/on_predict_batch_end": 2})  # fmt: skip

    def test_where_keras_asks_for_a_batch_in_the_training_function_it_is_watched_at_that(self):
        out, err = self.run_trial(KERAS + """
import time
sys.modules["keras"].backend = Made(backend=lambda: "jax")
for name in ("begin", "end", "batch_begin", "batch_end"):
    setattr(Callback, "on_predict_" + name, lambda self, *_, logs=None: None)
class Adapter:                                  # as of a dataset of Keras's
    batch_size, num_batches = 4, None
    @property
    def partial_batch_size(self): raise NotImplementedError
class EpochIterator:
    data_adapter = Adapter()
    def __init__(self, count, is_other=False): self.count, self.is_other = count, is_other
    def _get_iterator(self): return (time.sleep(0.03) or batch for batch in range(self.count))
    def __iter__(self):
        items = iter(self._get_iterator() if not self.is_other else "abcd")     # another one than the watched
        for step in range(0, self.count, group): yield step, items
def loop(kind, together, epoch_iterator):
    for step, items in epoch_iterator:
        together.tell(kind + "_batch_begin", step)
        for _ in range(group): next(items)
        together.tell(kind + "_batch_end", step + group - 1)
def evaluate(together, epoch_iterator):
    together.tell("test_begin"); loop("test", together, epoch_iterator); together.tell("test_end")
def predict(together, epoch_iterator):
    together.tell("predict_begin"); loop("predict", together, epoch_iterator); together.tell("predict_end")
def fit(together, epoch_iterator, evaluation):
    for one in together.callbacks: one.set_params({"steps": 4})
    together.tell("train_begin")
    for epoch in range(2):
        together.tell("epoch_begin", epoch); loop("train", together, epoch_iterator)
        evaluate(together, evaluation); together.tell("epoch_end", epoch)
    together.tell("train_end")
group, together, data, evaluation = 1, Together([other, mine]), EpochIterator(4), EpochIterator(2)
fit(together, data, evaluation)
predict(together, evaluation)
print(type(data) is type(evaluation) is EpochIterator)
group = 2
run = stepwell.init()
run.close()
for name, is_other in (("groups", False), ("unseen", True)):
    with stepwell.init(trial=run.trial + "." + name, hooks=False): fit(together, EpochIterator(4, is_other), EpochIterator(0))
""".replace("import time", "import stepwell, time"))
        self.assertEqual("True\n", out, err)
        self.assertNotIn("is not recorded", err)
        found = self.samples()
        for name in ("step", "train_batch", "dataloader_next", "samples_per_second"):
            self.assertEqual(list(range(8)), sorted(s.batch for s in found if s.name == name and s.batch >= 0), name)
        self.assertEqual([-1] * 6, [s.batch for s in found if s.name == "eval_batch"])
        fetches = [s for s in found if s.name == "dataloader_next"]
        self.assertEqual(8 + 6, len(fetches))
        self.assertGreaterEqual(min(s.value for s in fetches), 0.03)
        self.assertEqual([], [s.name for s in found if "train_batch/" in s.name])
        groups = self.samples(self.trial + ".groups")
        self.assertEqual([0, 0, 2, 2, 4, 4, 6, 6], sorted(s.batch for s in groups if s.name == "dataloader_next"))
        self.assertEqual([(0, 2), (2, 2), (4, 2), (6, 2)], sorted((s.batch, s.value) for s in groups if s.name == "train_batch.count"))
        unseen = self.counts(self.trial + ".unseen")
        self.assertEqual(4, unseen["step"], "what is not asked by us is counted all the same")

    def test_gathers_of_the_trainers_log_are_reductions_in_the_step(self):
        self.run_trial(_TRAINER + """
module = sys.modules["transformers.trainer"] = types.ModuleType("transformers.trainer")
module.nested_gather = lambda tensor: tensor
from stepwell.integrations.transformers import _Watcher
watcher, state, control, loader = _Watcher(None), Made(global_step=0, epoch=0), Made(), Loader("abc")
watcher.train_begins(state, loader, None)
for batch in loader:
    watcher.step_begins(state)
    state.global_step += 1
    watcher.step_ends(control)
    if state.global_step != 2: module.nested_gather("loss")
watcher.train_ends()
module.nested_gather("loss")
""")
        self.assertEqual([0, 2], sorted(s.batch for s in self.samples() if s.name == "reduce_metrics"))


if __name__ == "__main__":
    unittest.main()
