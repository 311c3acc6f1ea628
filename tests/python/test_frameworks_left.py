"""What a training leaves to those that come after it, and what was there before it, beside the real frameworks."""

import unittest

import test_frameworks
from frameworks import FrameworkTest


class LightningGivenBackTest(FrameworkTest):
    module = "pytorch_lightning"

    def test_the_trainers_own_profiler_reports_what_it_measured(self):
        out, err = self.train(test_frameworks.LightningTest.MODEL + """
    import glob, tempfile
    from stepwell.integrations.lightning import StepwellCallback
    from pytorch_lightning.profilers import AdvancedProfiler, PyTorchProfiler, SimpleProfiler
    for kind in (SimpleProfiler, AdvancedProfiler, PyTorchProfiler):
        folder = tempfile.mkdtemp()
        own = kind(dirpath=folder, filename="report")
        one = trainer(max_epochs=1, profiler=own, callbacks=[StepwellCallback()], enable_checkpointing=False)
        one.fit(Model(), loader(16))
        text = "".join(open(path).read() for path in glob.glob(folder + "/*.txt"))
        print(kind.__name__, "run_training_batch" in text or "ProfilerStep" in text, one.profiler is own)
    """)
        self.assertEqual([f"{kind}Profiler True True" for kind in ("Simple", "Advanced", "PyTorch")],
                         [line for line in out.splitlines() if "Profiler " in line], out + err)  # fmt: skip
        self.assertEqual(sorted([*range(4)] * 3), self.batches_of("step"))

    def test_the_counter_of_the_profiler_alone_is_no_callback_of_the_trainers_after_it(self):
        out, _ = self.train(test_frameworks.LightningTest.MODEL + """
    from stepwell.integrations.lightning import StepwellProfiler
    class Fails(Model):
        def training_step(self, batch, index): raise OSError("theirs")
    one = trainer(max_epochs=1, profiler=StepwellProfiler(), callbacks=[Other()], enable_checkpointing=False)
    one.fit(Model(), loader())
    names = [type(callback).__name__ for callback in one.callbacks]
    one = trainer(max_epochs=1, profiler=one.profiler, callbacks=[Other()], enable_checkpointing=False)
    try: one.fit(Fails(), loader())
    except OSError: print([name for name in names if name.startswith("Stepwell")], "Other" in names,
                          names == [type(callback).__name__ for callback in one.callbacks])
    """)
        self.assertIn("[] True True\n", out)
        self.assertEqual(list(range(6)), self.batches_of("samples_per_second"))


class KerasNumbersTest(FrameworkTest):
    module = "keras"

    def test_batches_of_a_fit_are_true_where_hooks_are_in_and_an_evaluation_came_before(self):
        self.train("""
    import stepwell
    run = stepwell.init()
    import numpy, torch, keras
    from stepwell.integrations.keras import StepwellCallback
    model = keras.Sequential([keras.layers.Input((8,)), keras.layers.Dense(2)])
    model.compile("sgd", "mse")
    x, y = numpy.random.rand(24, 8), numpy.random.rand(24, 2)
    model.evaluate(x, y, batch_size=4, verbose=0)
    for first in (0, 1):
        model.fit(x, y, batch_size=4, initial_epoch=first, epochs=first + 1, verbose=0, callbacks=[StepwellCallback()])
    """, KERAS_BACKEND="torch")
        self.assertEqual(list(range(12)), self.batches_of("samples_per_second"))
        told = {(sample.batch, sample.value) for sample in self.samples() if sample.name == "epoch"}
        self.assertEqual([(0, 0.0), (6, 1.0)], sorted(told))


class KerasNestedTest(FrameworkTest):
    module = "keras"

    def test_a_fit_within_another_one_is_whole_and_so_is_the_outer_one(self):
        out, _ = self.train("""
    import numpy, keras
    from stepwell.integrations.keras import StepwellCallback
    def made():
        model = keras.Sequential([keras.layers.Input((8,)), keras.layers.Dense(2)])
        model.compile("sgd", "mse")
        return model
    x, y = numpy.random.rand(8, 8), numpy.random.rand(8, 2)
    class Other(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None): pass
    class Probe(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            made().fit(x, y, batch_size=4, epochs=1, verbose=0, callbacks=[StepwellCallback()])
    other = Other()
    made().fit(x, y, batch_size=4, epochs=3, verbose=0, callbacks=[other, StepwellCallback(), Probe()])
    print(type(other) is Other)
    """, KERAS_BACKEND="torch")
        self.assertIn("True\n", out)
        self.assert_steps(list(range(12)), ("step", "train_batch", "dataloader_next", "samples_per_second"))
        self.assertEqual([0, 1, 4, 5, 8, 9], self.batches_of("callback/Other/on_train_batch_end"))
        self.assert_epochs({0: 0.0, 2: 0.0, 4: 1.0, 6: 0.0, 8: 2.0, 10: 0.0})


class TransformersLeftTest(FrameworkTest):
    module = "transformers"

    def test_a_training_that_resumes_within_an_epoch_after_one_that_an_exception_left(self):
        self.train(test_frameworks._TORCH + """
    import tempfile, warnings
    warnings.filterwarnings("ignore", "(?!stepwell)")
    from transformers import Trainer, TrainerCallback, TrainingArguments
    from stepwell.integrations.transformers import StepwellCallback
    class Data(torch.utils.data.Dataset):
        def __len__(self): return 24
        def __getitem__(self, i): return {"x": torch.randn(8), "labels": torch.tensor(i % 2)}
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(8, 2)
        def forward(self, x, labels=None): return {"loss": nn.functional.cross_entropy(self.layer(x), labels)}
    class Fails(TrainerCallback):
        def on_step_begin(self, args, state, control, **more):
            if state.global_step == 4: raise OSError("theirs")
    folder = tempfile.mkdtemp()
    def trainer(*callbacks):
        return Trainer(Model(), TrainingArguments(folder, per_device_train_batch_size=4, report_to=[], use_cpu=True,
                       save_strategy="steps", save_steps=3, disable_tqdm=True, num_train_epochs=1),
                       train_dataset=Data(), callbacks=[StepwellCallback(), *callbacks])
    try: trainer(Fails()).train()
    except OSError as error: kept = error       # as a notebook keeps it
    trainer().train(resume_from_checkpoint=folder + "/checkpoint-3")
    """)
        wanted = [0, 1, 2, 3, 3, 4, 5]
        self.assert_steps(wanted, ("step", "to_device", "train_batch"))
        # And that of the batch in which it was left.
        self.assertEqual([-1, *wanted], self.batches_of("dataloader_next", {"loader": "train"}))


if __name__ == "__main__":
    unittest.main()
