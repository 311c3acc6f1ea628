"""Ctrl-C at lines of ours, at random, in trainings of the real frameworks: it passes, and what follows is whole."""

from __future__ import annotations

import json
import os
import random
import unittest
from collections import Counter

import interrupts
import test_frameworks
from frameworks import FrameworkTest
from product import Sample

_SECONDS = int(os.environ.get("STEPWELL_TEST_SECONDS", "60"))  # of interrupts in each training
# A source has live(first), a training of four steps from that batch on, standing(), what is watched after one, and end(),
# which leaves all alone and says whether it is what it was.
_INTERRUPTS = """
    import json, time
    options = dict(hooks=HOOKS)
    run = stepwell.init(**options)
    live(100)                                   # what is made once is made
    stood, changed, unclosed, tidy = standing(), [], [], globals().get("tidy", lambda: None)
    def before(number):
        global run
        if number % 2 == 0:                     # one that nobody has recorded into
            if not run.close(60): unclosed.append(number)
            run = stepwell.init(**options)
    def after(number):
        tidy()
        live(1000 * number + 1000)
        with run.scope("after"): pass
        if standing() != stood: changed.append([number, repr(standing())])
    of_ours = lambda code: "/stepwell/" in code.co_filename
    lines, found = interrupt_some(live, of_ours, before, after, SEED, SECONDS)
    print("\\n" + json.dumps({"lines": lines, "found": found, "changed": changed, "stood": repr(stood), "unclosed": unclosed,
                              "is_left": end(), "is_closed": run.close(60)}))
"""

_MODEL = test_frameworks._TORCH + """
    import stepwell, sys, tempfile, warnings
    warnings.filterwarnings("ignore", "(?!stepwell)")
"""

_TRANSFORMERS = _MODEL + """
    from transformers import Trainer, TrainerCallback, TrainingArguments, trainer as trainer_module
    from accelerate import data_loader
    from stepwell.integrations.transformers import StepwellCallback, watch
    class Data(torch.utils.data.Dataset):
        def __len__(self): return 8
        def __getitem__(self, i): return {"x": torch.randn(8), "labels": torch.tensor(i % 2)}
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(8, 2)
        def forward(self, x, labels=None):
            logits = self.layer(x)
            return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}
    class At(TrainerCallback):
        def on_train_begin(self, args, state, control, **more):
            state.global_step += at
            state.max_steps += at
    class Other(TrainerCallback):
        def on_step_end(self, *args, **more): pass
    arguments = TrainingArguments(tempfile.mkdtemp(), per_device_train_batch_size=4, per_device_eval_batch_size=4,
                                  report_to=[], use_cpu=True, save_strategy="no", disable_tqdm=True, num_train_epochs=2,
                                  eval_strategy="epoch", logging_strategy="no")
    modules = (trainer_module, "skip_first_batches"), (data_loader, "send_to_device")
    originals = [getattr(*one) for one in modules]
    other = Other()
    trainer = Trainer(Model(), arguments, train_dataset=Data(), eval_dataset=Data(), callbacks=[At(), StepwellCallback(), other])
    watched = watch(trainer)
    def live(first):
        global at
        at = first
        trainer.train()
    def standing():
        return [type(getattr(*one)).__name__ for one in modules], [len(vars(type(one))) for one in (trainer, other)]
    def end():
        watched.end()
        return [getattr(*one) for one in modules] == originals and type(trainer) is Trainer and type(other) is Other
"""

_COMPOSER = _MODEL + """
    import gc
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
    class Scale(Algorithm):
        def match(self, event, state): return event == Event.AFTER_LOSS
        def apply(self, event, state, logger): state.loss = state.loss * 1
    kept, other, scale, train, evaluation = StepwellCallback(), Other(), Scale(), loader(8), loader(8)
    def live(first):
        model = Model()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        one = Trainer(model=model, train_dataloader=train, eval_dataloader=evaluation, optimizers=optimizer,
                      schedulers=torch.optim.lr_scheduler.StepLR(optimizer, 1), step_schedulers_every_batch=True,
                      max_duration="2ep", callbacks=[other, kept], algorithms=[scale], device="cpu",
                      progress_bar=False, log_to_console=False)
        one.state._iteration_length = "1ep"     # else none ends
        one.state.timestamp = one.state.timestamp.copy(batch=first, sample=4 * first)
        try: one.fit()
        finally:
            try: one.close()
            except KeyboardInterrupt:
                one.close()
                raise
    def tidy(): gc.collect()    # a trainer that its begin left closes its callbacks when it goes
    things = {other: Other, scale: Scale, train: DataLoader, evaluation: DataLoader}
    def standing(): return [type(one) is kind for one, kind in things.items()]
    def end(): return all(standing())
"""

_ACCELERATE = _MODEL + """
    from accelerate import Accelerator, data_loader
    from stepwell.integrations.accelerate import watch
    accelerator = Accelerator(cpu=True)
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    model, optimizer, train, evaluation, scheduler = accelerator.prepare(model, optimizer, loader(8), loader(8), scheduler)
    things = accelerator, model, optimizer, train, evaluation, scheduler, train.base_dataloader
    kinds, original = [type(one) for one in things], data_loader.send_to_device
    def standing(): return [type(one) is kind for one, kind in zip(things, kinds)], data_loader.send_to_device is original
    def is_left(): return standing() == ([True] * 7, True)
    def train_it():
        for epoch in range(2):
            for inputs, targets in train:
                loss = nn.functional.cross_entropy(model(inputs), targets)
                accelerator.backward(loss)
                optimizer.step(); scheduler.step(); optimizer.zero_grad()
                accelerator.gather(loss)
            for inputs, targets in evaluation: accelerator.gather_for_metrics(targets)
"""
_ACCELERATE_KEPT = _ACCELERATE + """
    watched = watch(accelerator, train, evaluation)
    def live(first):
        watched._first_batch = first
        train_it()
        watched.training.leave()
    def end():
        watched.end()
        return is_left()
"""
_ANEW = """
    def live(first):
        watched = begin(first)
        try: train_it()
        finally:
            try: watched.end()
            except KeyboardInterrupt:
                watched.end()
                raise
    end = is_left
"""
_ACCELERATE_ANEW = _ACCELERATE + """
    def begin(first): return watch(accelerator, train, evaluation, batch=first)
""" + _ANEW

_DEEPSPEED = _MODEL + """
    import os, socket
    with socket.create_server(("127.0.0.1", 0)) as free: port = str(free.getsockname()[1])
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=port, RANK="0", LOCAL_RANK="0", WORLD_SIZE="1",
                      DS_ACCELERATOR="cpu")
    import deepspeed
    from stepwell.integrations.deepspeed import watch
    sys.modules["deepspeed.comm.torch"].build_shm_op = lambda: None  # it would be compiled
    deepspeed.init_distributed("gloo", auto_mpi_discovery=False)
    model = nn.Linear(8, 2)
    data = TensorDataset(torch.randn(8, 8), torch.randint(0, 2, (8,)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    engine, _, _, _ = deepspeed.initialize(
        model=model, optimizer=optimizer,
        lr_scheduler=torch.optim.lr_scheduler.StepLR(optimizer, 1),
        config={"train_micro_batch_size_per_gpu": 4, "steps_per_print": 10**9,
                "csv_monitor": {"enabled": True, "output_path": tempfile.mkdtemp(), "job_name": "x"}})
    train, evaluation = engine.deepspeed_io(data, num_local_io_workers=0), loader(8)
    things = engine, train, evaluation, engine.lr_scheduler, engine.monitor
    kinds = [type(one) for one in things]
    def standing(): return [type(one) is kind for one, kind in zip(things, kinds)]
    def is_left(): return all(standing())
    def train_it():
        for epoch in range(2):
            for inputs, targets in train:
                loss = nn.functional.cross_entropy(engine(inputs), targets)
                engine.backward(loss)
                engine.step()
            engine.eval()
            for inputs, targets in evaluation: engine(inputs)
            engine.train()
"""
_DEEPSPEED_KEPT = _DEEPSPEED + """
    watched = watch(engine, train, evaluation)
    def live(first):
        engine.micro_steps = first
        engine.train()
        train_it()
    def end():
        watched.end()
        return is_left()
"""
_DEEPSPEED_ANEW = _DEEPSPEED + """
    def begin(first):
        engine.micro_steps = first
        engine.train()
        return watch(engine, train, evaluation)
""" + _ANEW

_KERAS = """
    import numpy, keras, stepwell
    from stepwell.integrations.keras import StepwellCallback
    model = keras.Sequential([keras.layers.Input((8,)), keras.layers.Dense(2)])
    model.compile("sgd", "mse")
    x, y = numpy.random.rand(8, 8), numpy.random.rand(8, 2)
    kept = StepwellCallback()
    class Other(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None): pass
    other = Other()
    def live(first):
        epoch = first // 2
        model.fit(x, y, batch_size=4, initial_epoch=epoch, epochs=epoch + 2, verbose=0, validation_data=(x, y),
                  callbacks=[other, kept])    # what comes after ours lies in the next step
    def standing(): return type(other) is Other
    end = standing
"""

_LIGHTNING = test_frameworks.LightningTest.MODEL + """
    import signal, stepwell
    from stepwell.integrations.lightning import StepwellCallback, StepwellProfiler
    def live(first):
        one = trainer(max_epochs=2, enable_checkpointing=False, num_sanity_val_steps=0, MADE)
        one.fit_loop.epoch_loop.batch_progress.total.ready = first     # the batches that were
        try: one.fit(Model(), loader(8), loader(8))
        finally: signal.signal(signal.SIGINT, signal.default_int_handler)
    other = Other()
    def standing(): return type(other) is Other
    end = standing
"""


class InterruptedTest(FrameworkTest):
    maxDiff = None

    def assert_whole(self, module: str, source: str, names: tuple[str, ...], alone: tuple[str, ...] = (), within: str = "",
                     **variables: str) -> None:  # fmt: skip
        """Each of the names has a sample of each of four steps in each whole training, and each of `alone` some in no step.
        `within`: what hooks see around train_batch."""
        self.module = module
        super().setUp()
        seed = int(os.environ.get("STEPWELL_TEST_SEED", random.randrange(2**31)))
        hooks = seed % 2 == 1
        if hooks:
            names = tuple(within * name.startswith("train_batch") + name for name in names)
        with self.subTest(STEPWELL_TEST_SEED=seed, hooks=hooks):
            more = _INTERRUPTS.replace("HOOKS", str(hooks)).replace("SEED", str(seed)).replace("SECONDS", str(_SECONDS))
            helper = "".join(f"    {line}\n" for line in interrupts.SOURCE.splitlines())
            out, err = self.train(helper + source + more, wait_s=120 + 4 * _SECONDS, **variables)
            told = json.loads(out.splitlines()[-1])
            found = told["found"]
            print(f"seed {seed}: {len(found)} interrupts at {len({place for place, _ in found})} places, "
                  f"{sum(came == 'not reached' for _, came in found)} not reached, of {told['lines']} lines")  # fmt: skip
            self.assertEqual([], [place for place, came in found if came == "swallowed"])
            self.assertEqual([], [(*found[number - 1], what) for number, what in told["changed"]], told["stood"])
            self.assertEqual(([], True, True), (told["unclosed"], told["is_left"], told["is_closed"]))
            for said in ("Exception ignored", "Traceback", "dropped"):
                self.assertNotIn(said, err)
            self.assert_samples(self.samples(), [["none", ""], *found], names, alone)

    def assert_samples(self, samples: list[Sample], found: list[list[str]], names: tuple[str, ...], alone: tuple[str, ...]) -> None:
        of: dict[str, Counter[int]] = {name: Counter() for name in {sample.name for sample in samples}}
        for sample in samples:
            if sample.batch >= 0 or sample.labels.get("loader") != "train":
                of[sample.name][sample.batch] += 1
        self.assertEqual({"after": Counter({-1: len(found)})},
                         {name: count for name, count in of.items() if name.rpartition("/")[2] == "after"})  # fmt: skip
        wrong = []
        for number, (place, came) in enumerate(found):
            for name in names:
                whole = [of.get(name, {}).get(1000 * number + 1000 + step, 0) for step in range(-1, 5)]
                begun = [of.get(name, {}).get(1000 * number + 500 + step, 0) for step in range(-1, 5)]
                if whole != [0, 1, 1, 1, 1, 0] or max(begun) > 1 or begun[0] + begun[5] > 0:
                    wrong.append(f"{number} {place} {came}, {name}: {whole}, of the interrupted one {begun}")
        self.assertEqual([], wrong)
        for name in alone:
            self.assertGreaterEqual(of[name][-1], 2 * len(found), name)
        doubled = [name for name in of if len(set(name.split("/"))) < len(name.split("/"))]
        # Accelerate's gather_for_metrics() gathers.
        self.assertEqual([], [name for name in doubled if name != "reduce_metrics/reduce_metrics"], "one within itself")

    def test_in_keras(self):
        self.assert_whole("keras", _KERAS, (
            "step", "train_batch", "dataloader_next", "samples_per_second", "callback/Other/on_train_batch_end"),
            ("eval_batch",), KERAS_BACKEND="torch")  # fmt: skip

    def test_in_lightning(self):
        names = ("step", "to_device", "train_batch", "train_batch/optimizer_step/forward", "train_batch/optimizer_step",
                 "train_batch/optimizer_step/backward", "step_lr_schedulers", "dataloader_next")  # fmt: skip
        for part, made, more in (
            ("callback", "callbacks=[other, StepwellCallback()]", ("samples_per_second", "callback/Other/on_train_batch_end")),
            ("profiler", "callbacks=[other], profiler=StepwellProfiler()", ()),
        ):
            with self.subTest(part):
                self.part = part
                self.assert_whole("pytorch_lightning", _LIGHTNING.replace("MADE", made), (*names, *more), ("eval_batch",))

    def test_in_transformers(self):
        self.assert_whole("transformers", _TRANSFORMERS, (
            "step", "train_batch", "train_batch/optimizer_step", "step_lr_schedulers", "to_device", "dataloader_next",
            "samples_per_second", "callback/Other/on_step_end"), ("eval_batch",))  # fmt: skip

    def test_in_composer(self):
        self.assert_whole("composer", _COMPOSER, (
            "step", "train_batch", "train_batch/forward", "train_batch/loss", "train_batch/backward", "step_lr_schedulers",
            "train_batch/to_device", "dataloader_next", "samples_per_second", "callback/Other/batch_end",
            "algorithm/Scale/after_loss"), ("eval_batch",), within="optimizer_step/")  # fmt: skip

    def test_in_accelerate(self):
        for part, source in (("kept", _ACCELERATE_KEPT), ("anew", _ACCELERATE_ANEW)):
            with self.subTest(part):
                self.part = part
                self.assert_whole("accelerate", source, (
                    "step", "train_batch", "train_batch/forward", "train_batch/backward", "train_batch/optimizer_step",
                    "step_lr_schedulers", "to_device", "dataloader_next", "samples_per_second"))  # fmt: skip

    def test_in_deepspeed(self):
        for part, source in (("kept", _DEEPSPEED_KEPT), ("anew", _DEEPSPEED_ANEW)):
            with self.subTest(part):
                self.part = part
                self.assert_whole("deepspeed", source, (
                    "step", "train_batch", "train_batch/forward", "train_batch/backward", "train_batch/optimizer_step",
                    "train_batch/optimizer_step/step_lr_schedulers", "dataloader_next", "samples_per_second",
                    "Train/Samples/lr"), STEPWELL_ATTEMPT_KEY="unset")  # fmt: skip

    part = ""

    @property
    def trial(self) -> str:
        return super().trial + (f".{self.part}" if self.part else "")

    def setUp(self) -> None:
        pass


if __name__ == "__main__":
    unittest.main()
