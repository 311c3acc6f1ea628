"""Loaders that fetch a batch ahead of the one that they hand out: each fetch is told with the batch that it is."""

import pathlib
import tempfile
import unittest

import product
from product import ProductTest
from test_hooks import _FAKE, _STEP, by_run

_LOOKAHEAD = pathlib.Path(__file__).resolve().parents[2] / "client" / "python" / "stepwell" / "_look_ahead.py"

# A clock that a fetch of batch N sets forward by N + 1 seconds, and nothing else does.
_CLOCKED = """
import time
now_s = [0.0]
time.perf_counter = lambda: now_s[0]
class Batches:
    def __init__(self, count): self.count = count
    def __iter__(self):
        for batch in range(self.count):
            now_s[0] += batch + 1
            yield torch.Tensor()
"""


class LookAheadTest(unittest.TestCase):
    """Without a process."""

    def made(self):
        scope: dict = {}
        exec(compile(_LOOKAHEAD.read_text("utf-8"), str(_LOOKAHEAD), "exec"), scope)
        return scope["LookAhead"]()

    def test_whose_fetches_are_whose(self):
        # What happens in each ask: seconds of a fetch, None for its end.
        for name, asks, wanted in [
            ("three batches", [[1.0, 2.0], [3.0], [None]], [1.0, 2.0, 3.0]),
            ("one batch", [[1.0, None]], [1.0]),
            ("the first two are skipped", [[1.0, 2.0, 4.0, 8.0], [16.0], [None]], [7.0, 8.0, 16.0]),
            ("the end is known before", [[1.0, 2.0], []], [1.0, 2.0]),
            ("nothing was seen", [[], []], [None, None]),
        ]:
            with self.subTest(name):
                ahead, found = self.made(), []
                for ask in asks:
                    for seconds in ask:
                        if seconds is None:
                            ahead.ended()
                        else:
                            ahead.fetched(seconds)
                    found.append(ahead.handed_out())
                self.assertEqual(wanted, found)

    def test_what_was_fetched_unseen_is_nobodys(self):
        ahead = self.made()
        ahead.fetched(1.0), ahead.fetched(2.0)
        self.assertEqual(1.0, ahead.handed_out())
        ahead.forget()
        ahead.fetched(4.0)
        self.assertIsNone(ahead.handed_out(), "that of the batch which was fetched meanwhile")
        ahead.ended()
        self.assertEqual(4.0, ahead.handed_out())


class AheadTest(ProductTest):
    def of(self, name: str, **labels: str) -> "list[tuple[int, float]]":
        """Batches and values of the samples of that name."""
        return sorted((sample.batch, sample.value) for sample in self.samples()
                      if sample.name == name and labels.items() <= sample.labels.items())  # fmt: skip

    def test_by_hooks_steps_are_the_programs_and_fetches_their_batches(self):
        scratch = tempfile.TemporaryDirectory(dir=product.folder())
        self.addCleanup(scratch.cleanup)
        folder = pathlib.Path(scratch.name)
        (folder / "train.py").write_text("import torch\n" + _CLOCKED + _STEP + """
from accelerate.data_loader import DataLoaderShard
for epoch in range(2): train(DataLoaderShard(torch.utils.data.DataLoader(Batches(4)), device="cuda"))
""")
        said = by_run(folder, "--trial", self.trial, product.python(), "train.py")
        self.assertIn("stepwell: 8 steps", said)
        self.assertNotIn("not seen", said)
        steps = list(range(8))
        for name in ("step", "train_batch", "train_batch/forward", "train_batch/backward", "train_batch/optimizer_step",
                     "to_device"):  # fmt: skip
            self.assertEqual(steps, [batch for batch, _ in self.of(name)], name)
        self.assertEqual([(batch, batch % 4 + 1) for batch in steps], self.of("dataloader_next", loader="train"))

    def test_by_hooks_one_ranks_fetch_for_all_is_a_batchs(self):
        self.run_trial("import stepwell, torch, accelerate\nstepwell.init()\n" + _CLOCKED + _STEP + """
from accelerate.data_loader import DataLoaderDispatcher
train(DataLoaderDispatcher(torch.utils.data.DataLoader(Batches(5))))
with torch.no_grad():
    for batch in DataLoaderDispatcher(torch.utils.data.DataLoader(Batches(2))): pass
""", variables={"PYTHONPATH": _FAKE})
        self.assertEqual([0, 1, 2], [batch for batch, _ in self.of("step")])
        self.assertEqual([(0, 3), (1, 7), (2, 5)], self.of("dataloader_next", loader="train"))
        self.assertEqual([0, 1, 2], [batch for batch, _ in self.of("train_batch")])
        self.assertEqual([(-1, 1), (-1, 2)], self.of("dataloader_next", loader="eval"))

    def test_by_hooks_a_loop_that_is_left_and_a_window_that_is_off(self):
        self.run_trial("import stepwell, torch, accelerate\nrun = stepwell.init()\n" + _CLOCKED + _STEP + """
from accelerate.data_loader import DataLoaderShard
loader = DataLoaderShard(torch.utils.data.DataLoader(Batches(6)))
for number, batch in enumerate(loader):
    if number == 2: break
    train([batch])
for number, batch in enumerate(loader):
    train([batch])
    if number == 1: run.off()
    if number == 3: run.on()
""", variables={"PYTHONPATH": _FAKE})
        # The third was left, in the fifth it was switched off.
        wanted = [0, 1, 3, 5, 6]
        self.assertTrue(self.eventually(lambda: [batch for batch, _ in self.of("step")] == wanted), self.of("step"))
        self.assertEqual(wanted, [batch for batch, _ in self.of("train_batch") if batch >= 0])
        # The batch that was there when it was switched on was fetched unseen.
        self.assertEqual([(0, 1), (1, 2), (3, 1), (6, 6)], [row for row in self.of("dataloader_next") if row[0] >= 0])

    def test_by_hooks_a_last_batch_that_an_exception_leaves_is_no_step(self):
        self.run_trial("import stepwell, torch, accelerate\nrun = stepwell.init()\n" + _CLOCKED + _STEP + """
from accelerate.data_loader import DataLoaderShard
loader = DataLoaderShard(torch.utils.data.DataLoader(Batches(3)))
for epoch in range(2):
    try:
        for number, batch in enumerate(loader):
            if number == 2 and epoch == 0: raise KeyError("of the training")
            train([batch])
    except KeyError: pass
for number, batch in enumerate(loader):
    train([batch])
    if number == 2: break            # the last one: whole
""", variables={"PYTHONPATH": _FAKE})
        self.assertEqual([0, 1, 3, 4, 5, 6, 7, 8], [batch for batch, _ in self.of("step")], "2 was left midway")

    def test_by_hooks_a_last_batch_is_a_step_once_it_is_trained_also_where_a_name_holds_the_iterator(self):
        self.run_trial("import stepwell, torch, accelerate\nrun = stepwell.init()\n" + _CLOCKED + _STEP + """
from accelerate.data_loader import DataLoaderDispatcher, DataLoaderShard
def epoch(loader, count, fails=""):
    items = iter(loader)            # as the Trainer, which asks for no more than there are
    for number in range(count):
        batch = next(items)
        if number == count - 1 and fails: raise KeyError("of the training")
        train([batch])
uneven = DataLoaderDispatcher(torch.utils.data.DataLoader(Batches(5)))
lone = DataLoaderDispatcher(torch.utils.data.DataLoader(Batches(1)))
for loader, count in ((uneven, 3), (lone, 1), (DataLoaderShard(torch.utils.data.DataLoader(Batches(3))), 3)):
    for fails in (False, True):
        try: epoch(loader, count, fails)
        except KeyError: pass
    with run.scope("between"): pass
""", variables={"PYTHONPATH": _FAKE})
        # Left midway were 5, 7 and 13.
        wanted = [0, 1, 2, 3, 4, 6, 8, 9, 10, 11, 12]
        self.assertEqual(wanted, [batch for batch, _ in self.of("step")])
        self.assertEqual([(0, 3), (1, 7), (2, 5), (3, 3), (4, 7), (6, 1), (8, 1), (9, 2), (10, 3), (11, 1), (12, 2)],
                         [row for row in self.of("dataloader_next", loader="train") if row[0] in wanted])  # fmt: skip
        self.assertEqual([-1] * 3, [batch for batch, _ in self.of("between")])

    def test_loaders_are_what_they_were_once_hooks_were_taken_out(self):
        for imported in ("before", "after", "while they are out"):
            with self.subTest(imported):
                trial = f"{self.trial}.{imported}".replace(" ", "_")
                out, _ = self.run_trial(("import accelerate\n" if imported == "before" else "") + """
import sys, stepwell, torch
def inside():
    from accelerate import data_loader
    kinds = data_loader.DataLoaderShard, data_loader.DataLoaderDispatcher
    return [vars(kind)["__iter__"] for kind in kinds] + [vars(kinds[1])["_fetch_batches"]]
def are_plain(): return {hasattr(one, "__wrapped__") for one in inside()} == {False}
stepwell.init().close()
""" + ("" if imported == "while they are out" else "print(are_plain())\n") + _STEP + """
out = stepwell.init(hooks=False)
print(are_plain())
for batch in sys.modules["accelerate"].data_loader.DataLoaderShard(torch.utils.data.DataLoader("abc")): pass
out.close()
with stepwell.init() as run:
    print(are_plain())
    train(sys.modules["accelerate"].data_loader.DataLoaderShard(torch.utils.data.DataLoader("abc")))
""", variables={"PYTHONPATH": _FAKE, "STEPWELL_TRIAL": trial})  # fmt: skip
                self.assertEqual(("" if imported == "while they are out" else "False\n") + "True\nFalse\n", out)
                self.assertTrue(self.eventually(lambda t=trial: self.counts(t).get("step") == 3), self.counts(trial))

    def test_an_integration_tells_each_fetch_with_its_batch(self):
        self.run_trial("import torch, stepwell\n" + _CLOCKED + """
stepwell.init()
from accelerate.data_loader import DataLoaderDispatcher, DataLoaderShard
from stepwell.integrations.accelerate import watch
class Accelerator:
    _optimizers = _schedulers = _models = ()
    def backward(self, loss): pass
    def gather(self, tensor): return tensor
for kind, count in ((DataLoaderShard, 3), (DataLoaderDispatcher, 4), (DataLoaderDispatcher, 3), (DataLoaderDispatcher, 1)):
    accelerator = Accelerator()
    loader = kind(torch.utils.data.DataLoader(Batches(count)))
    watched = watch(accelerator, loader)
    for batch in loader: accelerator.backward(None)
    watched.end()
    for batch in loader: pass
""", variables={"PYTHONPATH": _FAKE, "STEPWELL_HOOKS": "0"})
        self.assertEqual(list(range(8)), [batch for batch, _ in self.of("train_batch/backward")])
        self.assertEqual([(0, 1), (1, 2), (2, 3), (3, 3), (4, 7), (5, 3), (6, 3), (7, 1)],
                         self.of("dataloader_next", loader="train"))  # fmt: skip


if __name__ == "__main__":
    unittest.main()
