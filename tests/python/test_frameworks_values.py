"""How long things took under the real frameworks: what sleeps 20 ms has taken that, and no more than its step did."""

import time
import unittest

import test_frameworks
from frameworks import FrameworkTest
from test_frameworks import _TORCH, COMPOSER, DEEPSPEED

_SLEEP_S = 0.02
_CLOCK_S = 0.0005  # by which two clocks' readings of one moment may differ
_STEPS = [0, 1, 2, 3]
# Four batches of four items, whose fetch sleeps 5 ms each.
_SLOW = """
    import time
    class Slow(torch.utils.data.Dataset):
        def __len__(self): return 16
        def __getitem__(self, index):
            time.sleep(0.005)
            return torch.randn(8), torch.tensor(index % 2)
    def nap(*_, **__): time.sleep(0.02)
    slow = DataLoader(Slow(), batch_size=4)
    """


def _with(template: str, *methods: str) -> str:
    """The template, whose classes sleep in these methods."""
    for method in methods:
        (line,) = [line for line in template.splitlines() if line.strip().startswith(f"def {method}(")]
        template = template.replace(line, line.replace(": ", ": nap(); "))
    return template


class ValuesTest(FrameworkTest):
    def setUp(self) -> None:
        super().setUp()
        self.whole_s = 0.0

    def measure(self, source: str, **variables: str) -> None:
        begin_s = time.monotonic()
        self.train(source, **variables)
        self.whole_s = time.monotonic() - begin_s

    def of_batches(self, name: str, loader: str = "") -> dict[int, float]:
        """How long it took of each batch, all of them together; each of them slept."""
        found: dict[int, float] = {}
        for sample in self.samples():
            if sample.name == name and sample.batch >= 0 and sample.labels.get("loader", "") == loader:
                self.assertGreaterEqual(sample.value, _SLEEP_S, f"{name} of batch {sample.batch}")
                found[sample.batch] = found.get(sample.batch, 0.0) + sample.value
        return found

    def assert_parts(self, whole: str, *parts: str) -> None:
        """Each of them slept, in each batch, and one after the other: together they took no longer than the whole."""
        wholes, sums = self.of_batches(whole), dict.fromkeys(_STEPS, 0.0)
        self.assertEqual(_STEPS, sorted(wholes), whole)
        for part in parts:
            name, _, loader = part.partition("@")
            took = self.of_batches(name, loader)
            self.assertEqual(_STEPS, sorted(took), part)
            for batch, value in took.items():
                sums[batch] += value
        for batch in _STEPS:
            self.assertLessEqual(sums[batch], wholes[batch] + _CLOCK_S, f"{parts} of batch {batch}")
        self.assertLessEqual(sum(wholes.values()), self.whole_s)

    def assert_took(self, name: str, least_s: float, group: str) -> None:
        """Of those in no step."""
        (value,) = [sample.value for sample in self.samples() if (sample.name, sample.group) == (name, group)]
        self.assertGreaterEqual(value, least_s, name)
        self.assertLessEqual(value, self.whole_s, name)


class LightningTest(ValuesTest):
    module = "pytorch_lightning"

    def test_what_sleeps_took_that_long(self):
        for name, ours in (("callback", "callbacks=[StepwellCallback(), Other()]"),
                           ("profiler", "profiler=StepwellProfiler(), callbacks=[Other()]")):  # fmt: skip
            with self.subTest(name):
                self.part = name
                self.measure(_with(test_frameworks.LightningTest.MODEL + _SLOW, "on_train_batch_end") + f"""
    from stepwell.integrations.lightning import StepwellCallback, StepwellProfiler
    class Sleeps(Model):
        def training_step(self, batch, index):
            nap()
            return super().training_step(batch, index)
    trainer(max_epochs=1, {ours}, enable_checkpointing=False).fit(Sleeps(), slow)
    """)
                self.assert_parts("step", "dataloader_next@train", "train_batch", "callback/Other/on_train_batch_end")
                self.assert_parts("train_batch/optimizer_step", "train_batch/optimizer_step/forward")
                self.assert_took("event/epoch", 4 * 3 * _SLEEP_S, "lightning")

    part = ""

    @property
    def trial(self) -> str:
        return f"{super().trial}.{self.part}"


class TransformersTest(ValuesTest):
    module = "transformers"

    def test_what_sleeps_took_that_long(self):
        self.measure(_TORCH + _SLOW + """
    import tempfile, warnings
    warnings.filterwarnings("ignore", "(?!stepwell)")
    from transformers import Trainer, TrainerCallback, TrainingArguments
    from stepwell.integrations.transformers import StepwellCallback
    class Data(Slow):
        def __getitem__(self, index): return dict(zip(("x", "labels"), super().__getitem__(index)))
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(8, 2)
        def forward(self, x, labels=None):
            nap()
            return {"loss": nn.functional.cross_entropy(self.layer(x), labels)}
    class Other(TrainerCallback):
        on_step_end = nap
    Trainer(Model(), TrainingArguments(tempfile.mkdtemp(), per_device_train_batch_size=4, report_to=[], use_cpu=True,
            save_strategy="no", disable_tqdm=True, num_train_epochs=1),
            train_dataset=Data(), callbacks=[StepwellCallback(), Other()]).train()
    """)
        self.assert_parts("step", "train_batch", "callback/Other/on_step_end")
        # Its loader fetches a batch ahead, in the step before.
        fetches = self.of_batches("dataloader_next", "train")
        self.assertEqual(_STEPS, sorted(fetches))
        self.assertLessEqual(sum(fetches.values()), sum(self.of_batches("step").values()))


class KerasTest(ValuesTest):
    module = "keras"

    def test_what_sleeps_took_that_long(self):
        self.measure("""
    import keras
    """ + _TORCH + _SLOW + """
    from stepwell.integrations.keras import StepwellCallback
    class Model(keras.Sequential):
        def train_step(self, data):
            nap()
            return super().train_step(data)
    class Other(keras.callbacks.Callback):
        on_train_batch_begin = nap
    model = Model([keras.layers.Input((8,)), keras.layers.Dense(2)])
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    model.fit(slow, epochs=1, verbose=0, callbacks=[StepwellCallback(), Other()])
    """, KERAS_BACKEND="torch")
        self.assert_parts("step", "dataloader_next@train", "train_batch")
        self.assert_parts("train_batch", "callback/Other/on_train_batch_begin")
        # Both of them sleep in it.
        self.assertGreaterEqual(min(self.of_batches("train_batch").values()), 2 * _SLEEP_S)


class ComposerTest(ValuesTest):
    module = "composer"

    def test_what_sleeps_took_that_long(self):
        self.measure(_with(COMPOSER, "apply", "batch_end", "eval_standalone_end") + _SLOW + """
    one = trainer(Other(), StepwellCallback(), train_dataloader=slow, max_duration="1ep", algorithms=[Scale()])
    one.fit(); one.eval(loader(8)); one.close()
    """)
        self.assert_parts("step", "dataloader_next@train", "train_batch", "callback/Other/batch_end")
        self.assert_parts("event/train_batch", "event/loss")
        self.assert_parts("event/batch", "algorithm/Scale/after_loss")
        self.assert_parts("event/batch", "event/train_batch")
        self.assert_parts("train_batch", "algorithm/Scale/after_loss")
        self.assert_took("callback/Other/eval_standalone_end", _SLEEP_S, "timing")
        self.assert_took("event/epoch", 4 * 3 * _SLEEP_S, "composer")
        self.assert_took("event/fit", 4 * 3 * _SLEEP_S, "composer")


class DeepSpeedTest(ValuesTest):
    module = "deepspeed"

    def test_what_sleeps_took_that_long(self):
        self.measure(DEEPSPEED + _SLOW + """
    engine, _ = made()
    engine.module.register_forward_pre_hook(nap)
    watched = watch(engine, slow)
    for inputs, targets in slow:
        engine.backward(nn.functional.cross_entropy(engine(inputs), targets))
        engine.step()
    watched.end()
    """, STEPWELL_ATTEMPT_KEY="one")
        self.assert_parts("step", "dataloader_next@train", "train_batch")
        self.assert_parts("train_batch", "train_batch/forward")


class AccelerateTest(ValuesTest):
    module = "accelerate"

    def test_what_sleeps_took_that_long(self):
        self.measure(_TORCH + _SLOW + """
    from accelerate import Accelerator
    from stepwell.integrations.accelerate import watch
    accelerator = Accelerator(cpu=True)
    model = nn.Linear(8, 2)
    model.register_forward_pre_hook(nap)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model, optimizer, train = accelerator.prepare(model, optimizer, slow)
    watched = watch(accelerator, train)
    for inputs, targets in train:
        accelerator.backward(nn.functional.cross_entropy(model(inputs), targets))
        optimizer.step(); optimizer.zero_grad()
    watched.end()
    """)
        self.assert_parts("step", "train_batch")
        self.assert_parts("train_batch", "train_batch/forward")
        fetches = self.of_batches("dataloader_next", "train")
        self.assertEqual(_STEPS, sorted(fetches))
        self.assertLessEqual(sum(fetches.values()), sum(self.of_batches("step").values()))


if __name__ == "__main__":
    unittest.main()
