"""Behind the loaders of the real Accelerate, and so of the real Trainer, which fetch a batch ahead."""

import unittest

from frameworks import FrameworkTest
from test_frameworks import _TORCH as TORCH


class UnequalFetchesTest(FrameworkTest):
    """Behind Accelerate's loader, which fetches a batch ahead: the slow fetches are told with the batches that they are."""

    module = "transformers"
    SLOW = (1, 4, 5, 10)
    # Of 2 epochs of 6 batches.
    DATA = TORCH + """
    import tempfile, time, warnings
    warnings.filterwarnings("ignore", "(?!stepwell)")
    class Data(torch.utils.data.Dataset):
        epoch = 0
        def __len__(self): return 24
        def set_epoch(self, epoch): self.epoch = epoch
        def __getitem__(self, i):
            if i % 4 == 0 and 6 * self.epoch + i // 4 in (1, 4, 5, 10): time.sleep(0.5)
            return {"x": torch.randn(8), "labels": torch.tensor(i % 2)}
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(8, 2)
        def forward(self, x, labels=None): return {"loss": nn.functional.cross_entropy(self.layer(x), labels)}
    """
    ACCELERATE = DATA + """
    from accelerate import Accelerator
    accelerator = Accelerator(cpu=True)
    model = Model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model, optimizer, train = accelerator.prepare(model, optimizer, DataLoader(Data(), batch_size=4))
    def fit():
        for epoch in range(2):
            for batch in train:
                accelerator.backward(model(**batch)["loss"])
                optimizer.step(); optimizer.zero_grad()
    """
    TRAINER = DATA + """
    from transformers import Trainer, TrainingArguments
    def trainer(folder=None, **more):
        return Trainer(Model(), TrainingArguments(folder or tempfile.mkdtemp(), per_device_train_batch_size=4, report_to=[],
                       use_cpu=True, disable_tqdm=True, train_sampling_strategy="sequential", num_train_epochs=2,
                       save_strategy="steps" if folder else "no", save_steps=4, **more), train_dataset=Data())
    """

    def assert_slow_ones(self, steps: list[int]) -> None:
        for name in ("step", "dataloader_next"):
            labels = {"loader": "train"} if name == "dataloader_next" else {}
            self.assertEqual(steps, self.batches_of(name, labels), name)
        found = [(sample.value, sample.batch) for sample in self.samples()
                 if sample.name == "dataloader_next" and sample.labels["loader"] == "train"]  # fmt: skip
        slow = sorted(batch for _, batch in sorted(found)[-len(self.SLOW):])
        self.assertEqual(list(self.SLOW), slow, sorted(found, key=lambda row: row[1]))
        self.assertTrue(all(0.5 <= value for value, batch in found if batch in self.SLOW), found)

    def test_of_accelerate(self):
        self.train(self.ACCELERATE + """
    from stepwell.integrations.accelerate import watch
    watched = watch(accelerator, train); fit(); watched.end()
    """)
        self.assert_slow_ones(list(range(12)))
        self.assertEqual(list(range(12)), self.batches_of("train_batch/backward"))

    def test_of_accelerate_that_is_resumed_within_an_epoch(self):
        self.train(self.ACCELERATE + """
    from stepwell.integrations.accelerate import watch
    watched = watch(accelerator, train, batch=4)
    for loader in (accelerator.skip_first_batches(train, 4), train):
        for batch in loader:
            accelerator.backward(model(**batch)["loss"])
            optimizer.step(); optimizer.zero_grad()
    watched.end()
    """)
        steps = list(range(4, 12))
        for name in ("step", "dataloader_next", "train_batch/backward", "samples_per_second"):
            self.assertEqual(steps, self.batches_of(name), name)
        self.assert_epochs({4: 0.0, 6: 1.0})

    def test_of_accelerate_by_hooks(self):
        self.train("    import stepwell; stepwell.init()" + self.ACCELERATE + "\n    fit()\n")
        self.assert_slow_ones(list(range(12)))
        for name in ("train_batch", "train_batch/forward", "train_batch/backward", "train_batch/optimizer_step"):
            self.assertEqual(list(range(12)), self.batches_of(name), name)

    def test_of_the_trainer(self):
        self.train(self.TRAINER + """
    from stepwell.integrations.transformers import watch
    one = trainer(); watch(one); one.train()
    """)
        self.assert_slow_ones(list(range(12)))
        self.assertEqual(list(range(12)), self.batches_of("train_batch"))

    def test_of_the_trainer_by_hooks(self):
        self.train("    import stepwell; stepwell.init()" + self.TRAINER + "\n    trainer().train()\n")
        self.assert_slow_ones(list(range(12)))
        for name in ("train_batch", "train_batch/backward", "train_batch/optimizer_step"):
            self.assertEqual(list(range(12)), self.batches_of(name), name)

    def test_of_a_trainer_that_is_resumed_within_an_epoch(self):
        self.train(self.TRAINER + """
    from stepwell.integrations.transformers import watch
    folder = tempfile.mkdtemp()
    trainer(folder, max_steps=4).train()
    one = trainer(folder); watch(one); one.train(resume_from_checkpoint=folder + "/checkpoint-4")
    """)
        self.SLOW = (4, 5, 10)
        self.assert_slow_ones(list(range(4, 12)))
        self.assert_epochs({4: 0.0, 6: 1.0})
        self.assertEqual(list(range(4, 12)), self.batches_of("samples_per_second"))


if __name__ == "__main__":
    unittest.main()
