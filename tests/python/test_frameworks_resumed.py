"""Trainings of the real frameworks that go on where another one ended: their batches and epochs."""

import unittest

from frameworks import FrameworkTest
from test_frameworks import COMPOSER, DEEPSPEED


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
