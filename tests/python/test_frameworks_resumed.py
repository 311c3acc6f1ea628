"""Trainings of the real frameworks that go on where another one ended: their batches and epochs."""

import unittest

import test_frameworks
from frameworks import FrameworkTest
from test_frameworks import COMPOSER, DEEPSPEED


class LightningTest(FrameworkTest):
    module = "pytorch_lightning"

    def test_a_training_that_resumes_within_an_epoch(self):
        """After four batches of six, each a step of the optimizer, or each second one. It trained on after its checkpoint."""
        for accumulated, max_steps in ((1, 5), (2, 3)):
            for ours in ("callbacks=[Other(), StepwellCallback(), *more]", "profiler=StepwellProfiler(), callbacks=[Other(), *more]"):
                trial = f"{self.trial}.{accumulated}.{ours.partition('=')[0]}"
                with self.subTest(trial):
                    self.train(test_frameworks.LightningTest.MODEL + f"""
    import glob, tempfile
    from stepwell.integrations.lightning import StepwellCallback, StepwellProfiler
    folder = tempfile.mkdtemp()
    saves = pl.callbacks.ModelCheckpoint(folder, every_n_train_steps={4 // accumulated})
    def one(*more, **until): return trainer({ours}, accumulate_grad_batches={accumulated}, **until)
    one(saves, max_steps={max_steps}).fit(Model(), loader())
    (path,) = glob.glob(folder + "/*.ckpt")     # by the callback: what is saved after the training is at its epoch's end
    one(max_epochs=3, enable_checkpointing=False).fit(Model(), loader(), ckpt_path=path, weights_only=False)
    """, trial=trial)
                    steps = sorted([*range(max_steps * accumulated), *range(4, 18)])
                    for name in ("step", "train_batch", "samples_per_second", "callback/Other/on_train_batch_end"):
                        self.assertEqual(steps, self.batches_of(name, trial=trial), name)
                    self.assertEqual(steps, self.batches_of("dataloader_next", {"loader": "train"}, trial))
                    of_optimizer = [batch for batch in steps if batch % accumulated == accumulated - 1]
                    for name in ("train_batch/optimizer_step", "step_lr_schedulers"):
                        self.assertEqual(of_optimizer, self.batches_of(name, trial=trial), name)
                    # Each of the two trainings tells the epoch that it begins in.
                    self.assert_epochs({0: 0.0, 4: 0.0, 6: 1.0, 12: 2.0}, trial)


class ComposerTest(FrameworkTest):
    module = "composer"

    def test_a_training_that_resumes(self):
        for name, duration, first in (("at an epoch", "1ep", 6), ("within one", "9ba", 9)):
            with self.subTest(name):
                trial = f"{self.trial}.{first}"
                self.train(COMPOSER + f"""
    import glob, tempfile
    folder = tempfile.mkdtemp()
    kept = dict(train_dataloader=loader(), save_folder=folder, save_interval="{duration}", save_weights_only=False)
    one = trainer(max_duration="{duration}", **kept)
    one.fit(); one.close()
    (path,) = glob.glob(folder + "/ep*.pt")
    one = trainer(Other(), StepwellCallback(), train_dataloader=loader(), max_duration="3ep", load_path=path)
    one.fit(); one.close()
    """, trial=trial)
                steps = list(range(first, 18))
                for of in ("step", "train_batch/backward", "samples_per_second", "callback/Other/batch_end"):
                    self.assertEqual(steps, self.batches_of(of, trial=trial), of)
                self.assertEqual([1], [self.counts(trial).get("callback/Other/after_load")])
                # Within an epoch the batches that were trained already are fetched again, in the first step.
                again = [first] * (first % 6)
                self.assertEqual(again + steps, self.batches_of("dataloader_next", {"loader": "train"}, trial))
                self.assert_epochs({first: 1.0, 12: 2.0}, trial)


class DeepSpeedTest(FrameworkTest):
    module = "deepspeed"

    def test_a_training_that_resumes(self):
        """Its checkpoint tells how often the optimizer stepped, and the engine's own count of batches begins anew."""
        self.train(DEEPSPEED + """
    folder = tempfile.mkdtemp()
    def fit(engine, train):
        for inputs, targets in train:
            engine.backward(nn.functional.cross_entropy(engine(inputs), targets))
            engine.step()
    engine, train = made(gradient_accumulation_steps=2)
    fit(engine, train)
    engine.save_checkpoint(folder, tag="one")
    engine, train = made(gradient_accumulation_steps=2)
    watched = watch(engine, epoch=1)
    engine.load_checkpoint(folder, tag="one")
    fit(engine, train); fit(engine, train)
    watched.end()
    """, STEPWELL_ATTEMPT_KEY="one")
        steps = list(range(6, 18))
        self.assert_steps(steps, ("step", "train_batch", "train_batch/forward", "train_batch/backward", "dataloader_next"))
        self.assert_epochs({6: 1.0, 12: 2.0})


if __name__ == "__main__":
    unittest.main()
