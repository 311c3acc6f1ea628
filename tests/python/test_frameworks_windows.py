"""A schedule of windows per epoch under the real frameworks: which steps were recorded, the last of each window as whole as the rest."""

import unittest

import test_frameworks
from frameworks import FrameworkTest
from test_frameworks import _TORCH, COMPOSER

# Two epochs of six batches each.
_INIT = """
    import stepwell
    run = stepwell.init(hooks=False, schedule=stepwell.schedule(wait=1, active=2, repeat=1, per="epoch"))
    """
_STEPS = [1, 2, 7, 8]


class WindowsTest(FrameworkTest):
    def assert_windows(self, *names: str) -> None:
        for name in ("step", "train_batch", "samples_per_second", *names):
            self.assertEqual(_STEPS, self.batches_of(name), name)
        self.assertEqual(_STEPS, self.batches_of("dataloader_next", {"loader": "train"}))


class LightningTest(WindowsTest):
    module = "pytorch_lightning"

    def test_windows_of_each_epoch(self):
        for name, ours in (("callback", "callbacks=[Other(), StepwellCallback(run)]"),
                           ("profiler", "profiler=StepwellProfiler(run), callbacks=[Other()]")):  # fmt: skip
            with self.subTest(name):
                self.part = name
                self.train(test_frameworks.LightningTest.MODEL + _INIT + f"""
    from stepwell.integrations.lightning import StepwellCallback, StepwellProfiler
    trainer(max_epochs=2, {ours}, enable_checkpointing=False).fit(Model(), loader())
    """)
                self.assert_windows("callback/Other/on_train_batch_end", "train_batch/optimizer_step", "step_lr_schedulers")

    part = ""

    @property
    def trial(self) -> str:
        return f"{super().trial}.{self.part}"


class TransformersTest(WindowsTest):
    module = "transformers"

    def test_windows_of_each_epoch(self):
        self.train(_TORCH + _INIT + """
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
    class Other(TrainerCallback):
        def on_step_end(self, *args, **more): pass
    Trainer(Model(), TrainingArguments(tempfile.mkdtemp(), per_device_train_batch_size=4, report_to=[], use_cpu=True,
            save_strategy="no", disable_tqdm=True, num_train_epochs=2),
            train_dataset=Data(), callbacks=[StepwellCallback(run), Other()]).train()
    """)
        self.assert_windows("callback/Other/on_step_end", "train_batch/optimizer_step", "step_lr_schedulers")


class KerasTest(WindowsTest):
    module = "keras"

    def test_windows_of_each_epoch(self):
        self.train(_INIT + """
    import numpy, keras
    from stepwell.integrations.keras import StepwellCallback
    class Other(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None): pass
    model = keras.Sequential([keras.layers.Input((8,)), keras.layers.Dense(2)])
    model.compile("sgd", "mse")
    model.fit(numpy.random.rand(24, 8), numpy.random.rand(24, 2), batch_size=4, epochs=2, verbose=0,
              callbacks=[Other(), StepwellCallback(run)])
    """, KERAS_BACKEND="torch")
        self.assert_windows("callback/Other/on_train_batch_end")


class ComposerTest(WindowsTest):
    module = "composer"

    def test_windows_of_each_epoch(self):
        self.train(COMPOSER + _INIT + """
    one = trainer(StepwellCallback(run), Other(), train_dataloader=loader(), max_duration="2ep", algorithms=[Scale()])
    one.fit(); one.close()
    """)
        self.assert_windows("callback/Other/batch_end", "algorithm/Scale/after_loss", "event/batch", "train_batch/backward",
                            "step_lr_schedulers")  # fmt: skip


if __name__ == "__main__":
    unittest.main()
