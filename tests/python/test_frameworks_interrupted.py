"""Ctrl-C at lines of ours, at random, in trainings of the real Keras and Lightning: it passes, and what follows is whole."""

import random
import unittest

import interrupts
import test_frameworks
from frameworks import FrameworkTest

_COUNT = 12
_INTERRUPTS = """
    run = stepwell.init(hooks=False)
    def after(line):
        live(0)
        with run.scope("after"): pass
    of_ours = lambda code: "/stepwell/" in code.co_filename
    live(0)                                 # what is made once is made
    print(interrupt_some(lambda: live(500), of_ours, after, COUNT, SEED)[1])
"""


class InterruptedTest(FrameworkTest):
    def assert_whole(self, source: str, steps: int, **variables: str) -> None:
        seed = random.SystemRandom().getrandbits(32)
        with self.subTest(seed=seed):
            more = _INTERRUPTS.replace("COUNT", str(_COUNT)).replace("SEED", str(seed))
            helper = "".join(f"    {line}\n" for line in interrupts.SOURCE.splitlines())
            out, err = self.train(helper + source + more, **variables)
            self.assertIn("[]\n", out, out)
            self.assertNotIn("Exception ignored", err)
            found = self.samples()
            self.assertEqual({"after"}, {sample.name for sample in found if sample.name.rpartition("/")[2] == "after"})
            for name in ("step", "dataloader_next", "train_batch"):
                batches = sorted(sample.batch for sample in found if sample.name == name and 0 <= sample.batch < steps)
                self.assertEqual(sorted([*range(steps)] * (_COUNT + 1)), batches, name)

    def test_in_keras(self):
        self.module = "keras"
        self.setUp()
        self.assert_whole("""
    import numpy, keras, stepwell
    from stepwell.integrations.keras import StepwellCallback
    model = keras.Sequential([keras.layers.Input((8,)), keras.layers.Dense(2)])
    model.compile("sgd", "mse")
    x, y = numpy.random.rand(8, 8), numpy.random.rand(8, 2)
    kept = StepwellCallback()
    def live(first):
        model.fit(x, y, batch_size=4, initial_epoch=first, epochs=first + 2, verbose=0, validation_data=(x, y), callbacks=[kept])
    """, 4, KERAS_BACKEND="torch")

    def test_in_lightning(self):
        self.module = "pytorch_lightning"
        self.setUp()
        for part, made in (("callback", "callbacks=[StepwellCallback()]"), ("profiler", "profiler=StepwellProfiler()")):
            with self.subTest(part):
                self.part = f".{part}"
                self.assert_whole(test_frameworks.LightningTest.MODEL + """
    import signal, stepwell
    from stepwell.integrations.lightning import StepwellCallback, StepwellProfiler
    def live(first):
        one = trainer(max_epochs=2, enable_checkpointing=False, num_sanity_val_steps=0, MADE)
        one.fit_loop.epoch_loop.batch_progress.total.ready = first     # the batches that were
        try: one.fit(Model(), loader(8), loader(8))
        finally: signal.signal(signal.SIGINT, signal.default_int_handler)
    """.replace("MADE", made), 4)

    part = ""

    @property
    def trial(self) -> str:
        return super().trial + self.part

    def setUp(self) -> None:
        if self.module:
            super().setUp()


if __name__ == "__main__":
    unittest.main()
