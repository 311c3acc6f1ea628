"""What a timing says, beside the clock of who was timed: by bounds that hold however busy a machine is."""

import json
import unittest

from product import ProductTest
from test_hooks import _FAKE

# took("name", seconds at least): what the program's own clock says. All that is timed sleeps.
_OWN = """
import json, time
from time import perf_counter
known = {}
def slept(name):
    begin = perf_counter()
    time.sleep(0.03)
    known.setdefault(name, []).append(perf_counter() - begin)
def batches(count, name="fetch"):
    for batch in range(count):
        slept(name)
        yield Batch()
class Batch:
    shape = (8, 2)
"""


class ValuesTest(ProductTest):
    def values(self, name: str, **labels: str) -> "list[float]":
        """Those in steps, in the order of their batches."""
        found = sorted((sample.batch, sample.value) for sample in self.samples()
                       if sample.name == name and sample.batch >= 0 and labels.items() <= sample.labels.items())  # fmt: skip
        return [value for _, value in found]

    def assert_each_within(self, least: "list[float]", found: "list[float]", most: "list[float]") -> None:
        self.assertEqual(len(least), len(found))
        for low, value, high in zip(least, found, most):
            self.assertTrue(0.03 <= low <= value * 1.001 and value <= high * 1.001, (least, found, most))

    def test_of_scopes_steps_and_fetches_and_of_samples_per_second(self):
        out, _ = self.run_trial(_OWN + """
import stepwell
from stepwell.integrations.pytorch import TrainingLoop
training = TrainingLoop()
asked = [perf_counter()]
for index, batch in training.steps(batches(4)):
    begin = perf_counter()
    with training.train_batch: slept("work")
    known.setdefault("around", []).append(perf_counter() - begin)
    known.setdefault("whole", []).append(perf_counter() - asked[-1])
    asked.append(perf_counter())
print(json.dumps(known))
""")
        known = json.loads(out)
        self.assert_each_within(known["work"], self.values("train_batch"), known["around"])
        self.assert_each_within(known["fetch"], self.values("dataloader_next", loader="train"), known["whole"])
        inner = [fetch + work for fetch, work in zip(known["fetch"], known["work"])]
        steps = self.values("step")
        # A step reaches a little further than what the loop knows of it: to the next ask, and from the first one's begin.
        self.assertTrue(all(low <= value * 1.001 for low, value in zip(inner, steps)), (inner, steps))
        ratios = sorted(value * whole / 8 for value, whole in zip(self.values("samples_per_second"), known["whole"]))
        self.assertEqual(4, len(ratios))
        self.assertTrue(0.8 <= ratios[1] <= 1.2, ratios)  # the first batch of the four waits for the run that is opened
        self.assertTrue(all(value <= 8 / low * 1.001 for value, low in zip(self.values("samples_per_second"), inner)))

    def test_of_hooks(self):
        out, _ = self.run_trial(_OWN + """
import stepwell, torch
stepwell.init()
class Items:
    def __iter__(self): return batches(3)
class Model(torch.nn.Module):
    def forward(self, batch):
        slept("forward")
        return torch.Tensor()
model, optimizer = Model(), torch.optim.SGD()
for batch in torch.utils.data.DataLoader(Items()):
    begin = perf_counter()
    loss = model(batch)
    known.setdefault("around", []).append(perf_counter() - begin)
    loss.backward(); optimizer.step()
    known.setdefault("whole", []).append(perf_counter() - begin)
print(json.dumps(known))
""", variables={"PYTHONPATH": _FAKE})
        known = json.loads(out)
        self.assert_each_within(known["forward"], self.values("train_batch/forward"), known["around"])
        self.assert_each_within(known["forward"], self.values("train_batch"), known["whole"])
        fetched = self.values("dataloader_next", loader="train")
        self.assertTrue(all(low <= value * 1.001 for low, value in zip(known["fetch"], fetched)), (known, fetched))
        self.assertEqual(3, len(fetched))

    def test_a_wall_clock_that_jumps_is_in_no_timing_that_is_stamped_with_its_begin(self):
        out, err = self.run_trial(_OWN + """
import stepwell, torch
now_ns, jumps = time.time_ns(), []
def jump():
    jumps.append(now_ns + (len(jumps) % 3 - 1) * 86400 * 10**9)
    return jumps[-1]
time.time_ns, time.time = jump, lambda: jump() / 1e9
stepwell.init()
torch.cuda.is_there = True
model = torch.nn.Model()
def forward(batch): torch.cuda.work(10); return batch
model.inner[0].forward = forward
for batch in torch.utils.data.DataLoader("abcdef"):
    model(torch.Tensor())
    torch.cuda.finish()
with torch.no_grad():
    for batch in torch.utils.data.DataLoader("xyz"): slept("x")
print(len(jumps) > 8)
""", variables={"PYTHONPATH": _FAKE})
        self.assertEqual("True\n", out)
        self.assertNotIn("dropped", err)
        device = [(s.batch, round(s.value, 6)) for s in self.samples() if s.labels.get("clock") == "device"]
        self.assertEqual([(batch, 0.01) for batch in range(1, 6)], sorted(device)[-5:])
        evaluated = [s for s in self.samples() if s.labels.get("loader") == "eval"]
        self.assertEqual(["dataloader_iter"] + ["dataloader_next"] * 3, sorted(sample.name for sample in evaluated))
        self.assertTrue(all(0 <= sample.value < 60 for sample in evaluated), [sample.value for sample in evaluated])


if __name__ == "__main__":
    unittest.main()
