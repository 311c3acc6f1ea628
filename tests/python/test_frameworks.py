"""Each framework's integration beside the real one: its timings, with the batch and the epoch that they belong to."""

import pathlib
import unittest

import frameworks
import test_composer
from frameworks import FrameworkTest

_TORCH = """
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset
    torch.manual_seed(0)
    def loader(count=24, size=4):
        return DataLoader(TensorDataset(torch.randn(count, 8), torch.randint(0, 2, (count,))), batch_size=size)
    """

COMPOSER = _TORCH + """
    import warnings, logging
    warnings.filterwarnings("ignore", "(?!stepwell)")
    from composer import Algorithm, Callback, Event, Trainer
    from composer.models import ComposerModel
    from stepwell.integrations.composer import StepwellCallback
    class Model(ComposerModel):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(8, 2)
        def forward(self, batch): return self.layer(batch[0])
        def loss(self, outputs, batch): return nn.functional.cross_entropy(outputs, batch[1])
        def eval_forward(self, batch, outputs=None): return self.forward(batch)
        def get_metrics(self, is_train=False): return {}
        def update_metric(self, batch, outputs, metric): pass
    class Other(Callback):
        def batch_end(self, state, logger): pass
        def after_load(self, state, logger): pass
        def eval_standalone_end(self, state, logger): pass
        def predict_batch_end(self, state, logger): pass
    class Behind(Callback):
        def init(self, state, logger): pass
    class Scale(Algorithm):
        def match(self, event, state): return event == Event.AFTER_LOSS
        def apply(self, event, state, logger): state.loss = state.loss * 1
    def trainer(*callbacks, **more):
        model = Model()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        one = Trainer(model=model, optimizers=optimizer, callbacks=list(callbacks), device="cpu", progress_bar=False,
                      schedulers=torch.optim.lr_scheduler.StepLR(optimizer, 1), step_schedulers_every_batch=True,
                      log_to_console=False, **more)
        one.state._iteration_length = "1ep"     # else none ends
        return one
    """
DEEPSPEED = _TORCH + """
    import os, socket, sys, tempfile, warnings
    warnings.filterwarnings("ignore", "(?!stepwell)")
    with socket.create_server(("127.0.0.1", 0)) as free: port = str(free.getsockname()[1])
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=port, RANK="0", LOCAL_RANK="0", WORLD_SIZE="1",
                      DS_ACCELERATOR="cpu")
    import deepspeed
    from stepwell.integrations.deepspeed import watch
    sys.modules["deepspeed.comm.torch"].build_shm_op = lambda: None  # it would be compiled
    deepspeed.init_distributed("gloo", auto_mpi_discovery=False)
    def made(**more):
        model = nn.Linear(8, 2)
        data = TensorDataset(torch.randn(24, 8), torch.randint(0, 2, (24,)))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        engine, _, train, _ = deepspeed.initialize(
            model=model, optimizer=optimizer, training_data=data,
            lr_scheduler=torch.optim.lr_scheduler.StepLR(optimizer, 1),
            config={"train_micro_batch_size_per_gpu": 4, "steps_per_print": 10**9, **more,
                    "csv_monitor": {"enabled": True, "output_path": tempfile.mkdtemp(), "job_name": "x"}})
        return engine, train
    """


class PyTorchTest(FrameworkTest):
    module = "torch"

    def test_a_loop_of_ones_own(self):
        self.train(_TORCH + """
    from stepwell.integrations.pytorch import TrainingLoop
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    training = TrainingLoop()
    for epoch in range(2):
        for batch_index, (inputs, targets) in training.steps(loader(), epoch=epoch):
            with training.to_device: inputs = inputs.to("cpu")
            with training.train_batch:
                with training.forward: loss = nn.functional.cross_entropy(model(inputs), targets)
                with training.backward: loss.backward()
                optimizer.step()
            with training.step_lr_schedulers: scheduler.step()
            with training.from_device: loss = loss.item()
            with training.reduce_metrics: training.record("loss", loss)
        for inputs, targets in training.evaluate(loader(8)): model(inputs)
    """)
        steps = list(range(12))
        self.assert_steps(steps, (
            "step", "to_device", "train_batch", "train_batch/forward", "train_batch/backward", "step_lr_schedulers",
            "from_device", "reduce_metrics", "loss", "samples_per_second"))  # fmt: skip
        self.assertEqual(steps, self.batches_of("dataloader_next", {"loader": "train"}))
        self.assertEqual([-1] * 4, self.batches_of("dataloader_next", {"loader": "eval"}))
        self.assert_epochs({0: 0.0, 6: 1.0})
        self.assert_samples_per_second({batch: 4 for batch in steps})

    def test_a_schedule_switches_it(self):
        self.train(_TORCH + """
    import stepwell
    from stepwell.integrations.pytorch import TrainingLoop
    run = stepwell.init(schedule=stepwell.schedule(wait=2, active=2, repeat=1, per="epoch"))
    training = TrainingLoop(run)
    for epoch in range(2):
        for batch_index, batch in training.steps(loader(), epoch=epoch):
            with training.train_batch: pass
    """)
        wanted = [2, 3, 8, 9]
        self.assertTrue(self.eventually(lambda: self.batches_of("step") == wanted), self.batches_of("step"))
        self.assert_steps(wanted, (
            "train_batch", "samples_per_second"))  # fmt: skip
        self.assertEqual(wanted, self.batches_of("dataloader_next", {"loader": "train"}))


class LightningTest(FrameworkTest):
    module = "pytorch_lightning"
    MODEL = _TORCH + """
    import logging, warnings
    import pytorch_lightning as pl
    warnings.filterwarnings("ignore", "(?!stepwell)"); logging.getLogger("pytorch_lightning").setLevel(logging.ERROR)
    class Model(pl.LightningModule):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(8, 2)
        def training_step(self, batch, index):
            return nn.functional.cross_entropy(self.layer(batch[0]), batch[1])
        def validation_step(self, batch, index):
            self.log("val_loss", nn.functional.cross_entropy(self.layer(batch[0]), batch[1]))
        def configure_optimizers(self):
            optimizer = torch.optim.SGD(self.parameters(), lr=0.1)
            return [optimizer], [{"scheduler": torch.optim.lr_scheduler.StepLR(optimizer, 1), "interval": "step"}]
    class Other(pl.Callback):
        def on_train_batch_end(self, *args): pass
    def trainer(**more):
        return pl.Trainer(logger=False, enable_progress_bar=False, enable_model_summary=False, accelerator="cpu",
                          **more)
    """
    NAMES = ("step", "to_device", "train_batch", "train_batch/optimizer_step/forward",
             "train_batch/optimizer_step/backward", "train_batch/optimizer_step", "step_lr_schedulers")  # fmt: skip

    def test_the_callback_knows_batch_and_epoch_of_a_resumed_training_too(self):
        out, _ = self.train(self.MODEL + """
    import stepwell, tempfile
    from stepwell.integrations.lightning import StepwellCallback
    folder = tempfile.mkdtemp()
    first = trainer(max_epochs=1, callbacks=[StepwellCallback(), Other()], enable_checkpointing=False)
    first.fit(Model(), loader(), loader(8))
    first.save_checkpoint(folder + "/a.ckpt", weights_only=False)
    second = trainer(max_epochs=2, callbacks=[Other(), StepwellCallback()], enable_checkpointing=False)
    second.fit(Model(), loader(), loader(8), ckpt_path=folder + "/a.ckpt", **WEIGHTS)
    print(type(second.profiler).__name__, second.profiler.summary() == "")
    """.replace("**WEIGHTS", "weights_only=False"))
        self.assertIn("PassThroughProfiler True", out)
        steps = list(range(12))
        self.assert_steps(steps, (
            *self.NAMES, "samples_per_second", "callback/Other/on_train_batch_end"))  # fmt: skip
        self.assertEqual(steps, self.batches_of("dataloader_next", {"loader": "train"}))
        self.assert_epochs({0: 0.0, 6: 1.0})
        self.assert_samples_per_second({batch: 4 for batch in steps})
        # Two batches each, and two of the look at the model before a training begins.
        self.assertEqual([-1] * 6, self.batches_of("dataloader_next", {"loader": "eval"})[:6])
        self.assertEqual({-1}, set(self.batches_of("eval_batch")))

    def test_the_profiler_alone(self):
        out, _ = self.train(self.MODEL + """
    from stepwell.integrations.lightning import StepwellProfiler
    then = pl.profilers.SimpleProfiler()
    one = trainer(max_epochs=2, profiler=StepwellProfiler(then=then), enable_checkpointing=False)
    one.fit(Model(), loader(), loader(8))
    print(len(then.recorded_durations["run_training_batch"]), "run_training_batch" in one.profiler.summary())
    """)
        self.assertIn("12 True", out)
        steps = list(range(12))
        self.assert_steps(steps, self.NAMES)
        self.assertEqual(steps, self.batches_of("dataloader_next", {"loader": "train"}))
        self.assert_epochs({0: 0.0, 6: 1.0})

    def test_the_profiler_alone_knows_batch_and_epoch_of_a_resumed_training_too(self):
        self.train(self.MODEL + """
    import tempfile
    from stepwell.integrations.lightning import StepwellCallback, StepwellProfiler
    folder = tempfile.mkdtemp()
    first = trainer(max_epochs=1, profiler=StepwellProfiler(), enable_checkpointing=False)
    first.fit(Model(), loader(), loader(8))
    first.save_checkpoint(folder + "/a.ckpt", weights_only=False)
    print([type(one).__name__ for one in first.callbacks])
    second = trainer(max_epochs=2, profiler=StepwellProfiler(), enable_checkpointing=False)
    second.fit(Model(), loader(), loader(8), ckpt_path=folder + "/a.ckpt", weights_only=False)
    both = trainer(max_epochs=3, profiler=StepwellProfiler(), callbacks=[StepwellCallback()], enable_checkpointing=False)
    both.fit(Model(), loader(), ckpt_path=folder + "/a.ckpt", weights_only=False)
    """)
        # The third goes on where the second did.
        wanted = sorted([*range(12), *range(6, 18)])
        self.assert_steps(wanted, (*self.NAMES, "samples_per_second"))
        self.assertEqual(wanted, self.batches_of("dataloader_next", {"loader": "train"}))
        self.assertEqual([0, 6, 6, 12], self.batches_of("epoch"))
        self.assert_epochs({0: 0.0, 6: 1.0, 12: 2.0})
        self.assertFalse([name for name in self.counts() if name.startswith("callback/Stepwell")])

    def test_a_loader_without_a_length_and_an_exception(self):
        out, _ = self.train(self.MODEL + """
    import stepwell
    from stepwell.integrations.lightning import StepwellCallback
    class Stream(torch.utils.data.IterableDataset):
        def __iter__(self): return iter([(torch.randn(8), 1)] * 20)
    class Fails(Model):
        def training_step(self, batch, index):
            if self.current_epoch == 1 and index == 2: raise OSError("theirs")
            return super().training_step(batch, index)
    try:
        trainer(max_epochs=2, callbacks=[StepwellCallback()], enable_checkpointing=False).fit(
            Fails(), DataLoader(Stream(), batch_size=4))
    except OSError as error: print(error)
    with stepwell.init(hooks=False).scope("after"): pass
    """)
        self.assertIn("theirs", out)
        self.assertEqual(list(range(7)), self.batches_of("step"))
        self.assertEqual([-1], self.batches_of("after"))


class TransformersTest(FrameworkTest):
    module = "transformers"

    def test_a_trainer_its_accumulation_and_its_evaluation(self):
        self.train(_TORCH + """
    import tempfile, warnings
    warnings.filterwarnings("ignore", "(?!stepwell)")
    from transformers import Trainer, TrainingArguments
    from stepwell.integrations.transformers import StepwellCallback, watch
    class Data(torch.utils.data.Dataset):
        def __init__(self, count): self.count = count
        def __len__(self): return self.count
        def __getitem__(self, i): return {"x": torch.randn(8), "labels": torch.tensor(i % 2)}
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(8, 2)
        def forward(self, x, labels=None):
            logits = self.layer(x)
            return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}
    def arguments(**more):
        return TrainingArguments(tempfile.mkdtemp(), per_device_train_batch_size=4, per_device_eval_batch_size=4,
                                 report_to=[], use_cpu=True, save_strategy="no", disable_tqdm=True, **more)
    from transformers import TrainerCallback
    class Other(TrainerCallback):
        def on_step_end(self, *args, **more): pass
    one = Trainer(Model(), arguments(num_train_epochs=2, eval_strategy="epoch"), train_dataset=Data(24),
                  eval_dataset=Data(8), callbacks=[StepwellCallback(), Other()])
    watch(one)
    one.train()
    """)
        steps = list(range(12))
        self.assert_steps(steps, (
            "step", "train_batch", "train_batch/optimizer_step", "step_lr_schedulers", "to_device",
            "samples_per_second", "callback/Other/on_step_end"))  # fmt: skip
        self.assertEqual(steps, self.batches_of("dataloader_next", {"loader": "train"}))
        self.assert_epochs({0: 0.0, 6: 1.0})
        self.assertEqual([-1] * 4, self.batches_of("dataloader_next", {"loader": "eval"}))
        self.assertEqual({-1}, set(self.batches_of("eval_batch")))
        self.assert_samples_per_second({batch: 4 for batch in steps})

    def test_a_step_of_accumulated_batches_holds_their_fetches(self):
        self.train(_TORCH + """
    import tempfile, warnings
    warnings.filterwarnings("ignore", "(?!stepwell)")
    from transformers import Trainer, TrainingArguments
    from stepwell.integrations.transformers import StepwellCallback
    class Data(torch.utils.data.Dataset):
        def __len__(self): return 24
        def __getitem__(self, i): return {"x": torch.randn(8), "labels": torch.tensor(i % 2)}
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(8, 2)
        def forward(self, x, labels=None): return {"loss": nn.functional.cross_entropy(self.layer(x), labels)}
    Trainer(Model(), TrainingArguments(tempfile.mkdtemp(), per_device_train_batch_size=4, report_to=[], use_cpu=True,
            save_strategy="no", disable_tqdm=True, num_train_epochs=1, gradient_accumulation_steps=2),
            train_dataset=Data(), callbacks=[StepwellCallback()]).train()
    """)
        self.assertEqual([0, 1, 2], self.batches_of("step"))
        self.assertEqual([0, 0, 1, 1, 2, 2], self.batches_of("dataloader_next", {"loader": "train"}))
        self.assert_samples_per_second({0: 8, 1: 8, 2: 8})


class KerasTest(FrameworkTest):
    module = "keras"

    def test_fit_and_its_validation(self):
        self.train("""
    import numpy, keras
    from stepwell.integrations.keras import StepwellCallback
    model = keras.Sequential([keras.layers.Input((8,)), keras.layers.Dense(2)])
    model.compile("sgd", "mse")
    x, y = numpy.random.rand(22, 8), numpy.random.rand(22, 2)      # the last of six batches has two
    class Other(keras.callbacks.Callback):
        def on_train_batch_begin(self, batch, logs=None):
            if interrupts and batch == 2: raise KeyboardInterrupt
    interrupts = True
    import stepwell
    run = stepwell.init(trial="interrupted", hooks=False)
    kept = StepwellCallback()
    try: model.fit(x, y, batch_size=4, epochs=2, verbose=0, callbacks=[kept, Other()])
    except KeyboardInterrupt: pass
    interrupts = False
    run.close()
    model.fit(x, y, batch_size=4, epochs=2, verbose=0, validation_data=(x[:8], y[:8]), validation_batch_size=4,
              callbacks=[StepwellCallback(), Other()])
    model.fit(x, y, batch_size=4, initial_epoch=2, epochs=3, verbose=0, callbacks=[StepwellCallback(batch_size=4)])
    """, KERAS_BACKEND="torch")
        steps = list(range(18))
        self.assert_steps(steps, (
            "step", "train_batch", "samples_per_second"))  # fmt: skip
        self.assertEqual(list(range(12)), self.batches_of("callback/Other/on_train_batch_begin"))
        self.assertEqual(steps, self.batches_of("dataloader_next", {"loader": "train"}))
        self.assert_epochs({0: 0.0, 6: 1.0, 12: 2.0})
        sizes = {batch: 2 if batch % 6 == 5 else 4 for batch in steps}
        self.assert_samples_per_second(sizes)
        found = {s.name: {} for s in self.samples()}
        for sample in self.samples(): found[sample.name][sample.batch] = sample.value
        seen = [round(found["samples_per_second"][batch] * found["step"][batch]) for batch in steps]
        self.assertGreaterEqual(sum(size == sizes[batch] for batch, size in enumerate(seen)), 12, seen)
        self.assertTrue(any(seen[batch] == 2 for batch in (5, 11, 17)), seen)
        self.assertEqual([-1] * 4, self.batches_of("dataloader_next", {"loader": "eval"}))


class ComposerTest(FrameworkTest):
    module = "composer"

    def test_events_callbacks_and_algorithms(self):
        self.train(COMPOSER + """
    one = trainer(Other(), StepwellCallback(), Behind(), train_dataloader=loader(), eval_dataloader=loader(8),
                  max_duration="2ep", algorithms=[Scale()])
    one.fit(); one.eval(loader(8)); one.predict(loader(8)); one.close()
    """)
        steps = list(range(12))
        self.assert_steps(steps, (
            "step", "train_batch", "train_batch/forward", "train_batch/loss", "train_batch/backward",
            "step_lr_schedulers", "train_batch/to_device", "samples_per_second", "callback/Other/batch_end",
            "algorithm/Scale/after_loss"))  # fmt: skip
        self.assertEqual(steps, self.batches_of("dataloader_next", {"loader": "train"}))
        self.assert_epochs({0: 0.0, 6: 1.0})
        # After each epoch, by itself, and of the prediction.
        self.assertEqual([-1] * 8, self.batches_of("dataloader_next", {"loader": "eval"}))
        counts = self.counts()
        self.assertEqual([1, 1, 1, 2, 2], [counts.get(name) for name in (
            "callback/Other/after_load", "callback/Behind/init", "callback/Other/eval_standalone_end",
            "callback/Other/predict_batch_end", "predict_batch/forward")])  # fmt: skip
        self.assert_samples_per_second({batch: 4 for batch in steps})
        events = {sample.name for sample in self.samples() if sample.group == "composer"}
        self.assertEqual({f"event/{name}" for name in test_composer.TIMINGS}, events)

    def test_its_events_are_those_that_are_known(self):
        """Of the release that is installed: which come in pairs, and which do not."""
        out, _ = self.train("""
    from composer import Event
    pairs = sorted(event.canonical_name for event in Event if event.is_before_event)
    assert pairs == sorted(event.canonical_name for event in Event if event.is_after_event)
    print(pairs, [event.value for event in Event if not event.is_before_event and not event.is_after_event])
    """)
        self.assertIn(f"{sorted(test_composer.TIMINGS)} {test_composer.ALONE}\n", out)


class AccelerateTest(FrameworkTest):
    module = "accelerate"

    def test_a_loop_of_what_was_prepared_and_its_tracker(self):
        self.train(_TORCH + """
    from accelerate import Accelerator
    from stepwell.integrations.accelerate import StepwellTracker, watch
    accelerator = Accelerator(cpu=True, log_with=StepwellTracker())
    accelerator.init_trackers("mine", config={"lr": 0.1})
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    model, optimizer, train, evaluation, scheduler = accelerator.prepare(
        model, optimizer, loader(), loader(8), scheduler)
    watched = watch(accelerator, train, evaluation)
    for epoch in range(2):
        for inputs, targets in train:
            loss = nn.functional.cross_entropy(model(inputs), targets)
            accelerator.backward(loss)
            optimizer.step(); scheduler.step(); optimizer.zero_grad()
            accelerator.log({"loss": accelerator.gather(loss).mean()})
        for inputs, targets in evaluation: accelerator.gather_for_metrics(targets)
    accelerator.end_training(); watched.end()
    """)
        steps = list(range(12))
        self.assert_steps(steps, (
            "step", "train_batch", "train_batch/forward", "train_batch/backward", "train_batch/optimizer_step", "step_lr_schedulers",
            "to_device", "loss", "samples_per_second"))  # fmt: skip
        self.assertEqual(steps, self.batches_of("dataloader_next", {"loader": "train"}))
        self.assert_epochs({0: 0.0, 6: 1.0})
        self.assertEqual([-1] * 4, self.batches_of("dataloader_next", {"loader": "eval"}))
        self.assertEqual(steps, [batch for batch in self.batches_of("reduce_metrics") if batch >= 0])
        self.assert_samples_per_second({batch: 4 for batch in steps})

    def test_gradients_that_accumulate_are_training_steps_of_their_batches(self):
        """Accelerate's own way calls the optimizer for each batch; it steps at each second."""
        self.train(_TORCH + """
    from accelerate import Accelerator
    from stepwell.integrations.accelerate import watch
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model, optimizer, train = accelerator.prepare(model, optimizer, loader())
    watched = watch(accelerator, train)
    for inputs, targets in train:
        with accelerator.accumulate(model):
            accelerator.backward(nn.functional.cross_entropy(model(inputs), targets))
            optimizer.step(); optimizer.zero_grad()
        accelerator.gather(targets)
    with torch.no_grad(): model(inputs)
    watched.end()
    """)
        self.assert_steps(list(range(6)), (
            "step", "train_batch", "train_batch/forward", "train_batch/backward", "train_batch/optimizer_step",
            "reduce_metrics"))  # fmt: skip
        self.assertEqual([-1], self.batches_of("forward"))


class DeepSpeedTest(FrameworkTest):
    module = "deepspeed"

    def test_an_engine(self):
        self.train(DEEPSPEED + """
    engine, train = made()
    watched = watch(engine, eval_loader=(evaluation := loader(8)))
    for epoch in range(2):
        for inputs, targets in train:
            loss = nn.functional.cross_entropy(engine(inputs), targets)
            engine.backward(loss)
            engine.step()
        engine.eval()
        for inputs, targets in evaluation: engine(inputs)
        engine.train()
    watched.end()
    """, STEPWELL_ATTEMPT_KEY="one")
        steps = list(range(12))
        self.assert_steps(steps, (
            "step", "train_batch", "train_batch/forward", "train_batch/backward", "train_batch/optimizer_step",
            "train_batch/optimizer_step/step_lr_schedulers", "samples_per_second"))  # fmt: skip
        self.assertEqual(steps, self.batches_of("dataloader_next", {"loader": "train"}))
        self.assertEqual([-1] * 4, self.batches_of("dataloader_next", {"loader": "eval"}))
        self.assert_epochs({0: 0.0, 6: 1.0})
        self.assert_samples_per_second({batch: 4 for batch in steps})
        self.assertIn("Train/Samples/lr", {sample.name for sample in self.samples() if sample.group == "deepspeed"})


class ExamplesTest(FrameworkTest):
    """Those of docs/frameworks: forty batches each, and an evaluation after each epoch."""

    EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "docs" / "frameworks" / "examples"

    def setUp(self) -> None:
        pass

    def test_each_pages_example_says_what_the_page_says(self):
        for module, page in [("torch", "pytorch"), ("pytorch_lightning", "lightning"), ("transformers", "transformers"),
                             ("composer", "composer"), ("keras", "keras"), ("accelerate", "accelerate"),
                             ("deepspeed", "deepspeed")]:  # fmt: skip
            with self.subTest(page):
                if reason := frameworks.reason_to_skip(module):
                    self.skipTest(reason)
                trial = f"{self.trial}.{page}"
                path = f"{frameworks.package_path()}:{self.EXAMPLES}"
                source = (self.EXAMPLES / f"train_{page}.py").read_text("utf-8").replace('trial="pytorch", ', "")
                self.train(source, trial=trial, PYTHONPATH=path, PYTHONWARNINGS="ignore", KERAS_BACKEND="torch")
                self.assertEqual(list(range(40)), self.batches_of("step", trial=trial))
                self.assertEqual(list(range(40)), self.batches_of("dataloader_next", {"loader": "train"}, trial))
                evaluated = self.batches_of("dataloader_next", {"loader": "eval"}, trial)
                self.assertEqual([-1] * (10 if page == "lightning" else 8), evaluated)


if __name__ == "__main__":
    unittest.main()
