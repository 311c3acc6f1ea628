"""Keras on TensorFlow, which fetches a batch inside of its compiled function: what docs/frameworks/keras.md says of it."""

import os
import statistics
import unittest
import unittest.mock

from frameworks import FrameworkTest

_TENSORFLOW = os.environ.get("STEPWELL_TENSORFLOW_PYTHON", "")  # that has tensorflow.txt; part `readers` makes it


@unittest.skipUnless(_TENSORFLOW, "STEPWELL_TENSORFLOW_PYTHON names no interpreter; tests/run.sh --long --only readers makes one")
class TensorFlowTest(FrameworkTest):
    def setUp(self) -> None:
        patch = unittest.mock.patch.dict(os.environ, {"STEPWELL_FRAMEWORKS_PYTHON": _TENSORFLOW})
        patch.start()
        self.addCleanup(patch.stop)

    def test_a_fetch_is_a_part_of_the_training_step(self):
        self.train("""
    import time, numpy, keras
    from stepwell.integrations.keras import StepwellCallback
    assert keras.backend.backend() == "tensorflow"
    class Data(keras.utils.PyDataset):
        def __len__(self): return 4
        def __getitem__(self, index):
            time.sleep(0.05)
            return numpy.random.rand(4, 8), numpy.random.rand(4, 2)
    class Other(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None): pass
    model = keras.Sequential([keras.layers.Input((8,)), keras.layers.Dense(2)])
    model.compile("sgd", "mse")
    ours = [Other(), StepwellCallback(batch_size=4)]
    model.fit(Data(), validation_data=Data(), epochs=2, verbose=0, callbacks=ours)
    x, y = numpy.random.rand(22, 8), numpy.random.rand(22, 2)      # the last of six batches has two
    model.fit(x, y, batch_size=4, initial_epoch=2, epochs=3, verbose=0, callbacks=[Other(), StepwellCallback()])
    model.evaluate(Data(), verbose=0, callbacks=ours)
    model.predict(Data(), verbose=0, callbacks=ours)
    """, KERAS_BACKEND="tensorflow", TF_CPP_MIN_LOG_LEVEL="3")
        steps = [*range(8), *range(12, 18)]
        self.assert_steps(steps, ("step", "train_batch", "dataloader_next", "samples_per_second",
                                  "callback/Other/on_train_batch_end"))  # fmt: skip
        self.assert_epochs({0: 0.0, 4: 1.0, 12: 2.0})
        self.assert_samples_per_second({batch: 2 if batch == 17 else 4 for batch in steps})
        self.assertEqual([-1] * 16, self.batches_of("dataloader_next", {"loader": "eval"}))
        self.assertEqual([-1] * 16, self.batches_of("eval_batch"))
        slow = {name: [s.value for s in self.samples() if s.name == name and 0 <= s.batch < 8] for name in ("dataloader_next", "train_batch")}
        self.assertLess(statistics.median(slow["dataloader_next"]), 0.01, slow)
        self.assertGreater(statistics.median(slow["train_batch"]), 0.03, slow)


if __name__ == "__main__":
    unittest.main()
