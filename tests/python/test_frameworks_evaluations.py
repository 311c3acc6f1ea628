"""Evaluations and predictions of the real frameworks that no training lies around."""

import unittest

from frameworks import FrameworkTest, reason_to_skip
from test_frameworks import _TORCH, COMPOSER


class TransformersTest(FrameworkTest):
    module = "transformers"

    def test_an_evaluation_and_a_prediction_by_themselves(self):
        self.train(_TORCH + """
    import tempfile, warnings
    warnings.filterwarnings("ignore", "(?!stepwell)")
    from transformers import Trainer, TrainerCallback, TrainingArguments
    from stepwell.integrations.transformers import watch
    class Data(torch.utils.data.Dataset):
        def __len__(self): return 8
        def __getitem__(self, i): return {"x": torch.randn(8), "labels": torch.tensor(i % 2)}
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(8, 2)
        def forward(self, x, labels=None): return {"loss": (logits := self.layer(x)).sum(), "logits": logits}
    class Other(TrainerCallback):
        def on_evaluate(self, *args, **more): pass
        def on_predict(self, *args, **more): pass
    one = Trainer(Model(), TrainingArguments(tempfile.mkdtemp(), per_device_eval_batch_size=4, report_to=[], use_cpu=True,
                  disable_tqdm=True), eval_dataset=Data(), callbacks=[Other()])
    watched = watch(one)
    one.evaluate(); one.predict(Data()); one.predict(Data())
    watched.end()
    one.predict(Data())
    """)
        counts = self.counts()
        self.assertEqual([6, 6, 1, 2], [counts.get(name) for name in (
            "dataloader_next", "eval_batch", "callback/Other/on_evaluate", "callback/Other/on_predict")])  # fmt: skip
        self.assertGreaterEqual(counts["reduce_metrics"], 6)
        self.assertEqual([-1] * 6, self.batches_of("dataloader_next", {"loader": "eval"}))
        self.assertEqual({-1}, {sample.batch for sample in self.samples()})


class ComposerTest(FrameworkTest):
    module = "composer"

    def test_an_evaluation_and_a_prediction_by_themselves(self):
        self.train(COMPOSER + """
    one = trainer(Other(), StepwellCallback())
    one.eval(loader(8)); one.predict(loader(8)); one.close()
    """)
        self.assertEqual([-1] * 4, self.batches_of("dataloader_next", {"loader": "eval"}))
        counts = self.counts()
        self.assertEqual([1, 1, 2, 2, 2], [counts.get(name) for name in (
            "callback/Other/after_load", "callback/Other/eval_standalone_end", "callback/Other/predict_batch_end",
            "eval_batch", "predict_batch")])  # fmt: skip
        self.assertEqual({-1}, {sample.batch for sample in self.samples()})


class KerasTest(FrameworkTest):
    module = "keras"

    def test_an_evaluation_and_a_prediction_by_themselves(self):
        self.train("""
    import numpy, keras
    from stepwell.integrations.keras import StepwellCallback
    model = keras.Sequential([keras.layers.Input((8,)), keras.layers.Dense(2)])
    model.compile("sgd", "mse")
    x, y = numpy.random.rand(8, 8), numpy.random.rand(8, 2)
    class Other(keras.callbacks.Callback):
        def on_test_end(self, logs=None): pass
        def on_predict_batch_end(self, batch, logs=None): pass
    callbacks = [Other(), StepwellCallback()]
    model.evaluate(x, y, batch_size=4, verbose=0, callbacks=callbacks)
    model.predict(x, batch_size=4, verbose=0, callbacks=callbacks)
    """, KERAS_BACKEND="torch")
        self.assertEqual({"dataloader_next": 4, "eval_batch": 4, "callback/Other/on_test_end": 1,
                          "callback/Other/on_predict_batch_end": 2}, self.counts())  # fmt: skip
        self.assertEqual([-1] * 4, self.batches_of("dataloader_next", {"loader": "eval"}))


class JaxTest(FrameworkTest):
    """Keras on JAX, whose training function asks for its batch itself."""

    module = "jax"

    def test_fetches_of_a_slow_dataset_are_no_part_of_the_training_step(self):
        if reason := reason_to_skip("keras"):
            self.skipTest(reason)
        self.train("""
    import time, numpy, keras
    from stepwell.integrations.keras import StepwellCallback
    assert keras.backend.backend() == "jax"
    class Data(keras.utils.PyDataset):
        def __len__(self): return 4
        def __getitem__(self, index):
            time.sleep(0.03)
            return numpy.random.rand(4, 8), numpy.random.rand(4, 2)
    def endless():
        while True: yield Data()[0]
    model = keras.Sequential([keras.layers.Input((8,)), keras.layers.Dense(2)])
    model.compile("sgd", "mse")
    ours = [StepwellCallback()]
    model.fit(Data(), validation_data=Data(), epochs=2, verbose=0, callbacks=ours)
    model.fit(endless(), initial_epoch=2, epochs=3, steps_per_epoch=4, verbose=0, callbacks=ours)
    model.evaluate(Data(), verbose=0, callbacks=ours)
    model.predict(Data(), verbose=0, callbacks=ours)
    """, KERAS_BACKEND="jax", JAX_PLATFORMS="cpu")
        self.assert_steps(list(range(12)), ("step", "train_batch", "dataloader_next"))
        self.assertEqual([-1] * 16, self.batches_of("dataloader_next", {"loader": "eval"}))
        self.assertEqual([-1] * 16, self.batches_of("eval_batch"))
        # Keras has taken the generator's first two before it tells of a training.
        self.assertGreaterEqual(min(s.value for s in self.samples() if s.name == "dataloader_next" and not 8 <= s.batch < 10), 0.03)


if __name__ == "__main__":
    unittest.main()
