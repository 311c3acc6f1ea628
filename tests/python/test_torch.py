"""Untouched scripts of torch's by `stepwell run`. Where there is no torch each test says so."""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import product
from product import ProductTest
from test_hooks import by_run

_TORCH = os.environ.get("PRODUCT_TORCH", "")  # the folder that has it
_SCRIPT = """
import sys, time, torch
from torch.utils.data import DataLoader, Dataset

class Slow(Dataset):
    def __len__(self): return 8
    def __getitem__(self, index):
        time.sleep(0.02)
        return transform(torch.randn(4)), torch.randn(1)

transform = torch.nn.Identity()     # of the dataset: a part of its fetch, also in a worker

def timed(loader):      # by the script's own clock
    items = iter(loader)
    while True:
        begin = time.perf_counter()
        try: item = next(items)
        except StopIteration: return
        print("fetched in", time.perf_counter() - begin)
        yield item

def main(worker_count):
    torch.set_num_threads(1)
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1))
    optimizer = torch.optim.Adam(model.parameters())
    scheduler = torch.optim.lr_scheduler.SequentialLR(optimizer, [
        torch.optim.lr_scheduler.ConstantLR(optimizer), torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)], [1])
    loader = DataLoader(Slow(), batch_size=2, num_workers=worker_count, persistent_workers=worker_count > 0)
    for epoch in range(2):
        for inputs, wanted in timed(loader):
            inputs.to("meta")
            optimizer.zero_grad()
            torch.nn.functional.mse_loss(model(inputs), wanted).backward()
            optimizer.step()
        scheduler.step()
        with torch.no_grad():
            for inputs, wanted in DataLoader(Slow(), batch_size=4): model(inputs)
    torch.save(model.state_dict(), "model.pt")
    torch.save(model, "whole.pt")
    print(sorted(torch.load("model.pt")), torch.jit.script(model)(torch.randn(2, 4)).shape)

if __name__ == "__main__":
    main(int(sys.argv[1]))
"""
# What was reduced outlives `model`: torch 1.13 may hang, also without us, where the last reference to a
# tensor is a thread's of gloo, which the model's end waits for while it holds the interpreter's lock.
_RANKED = """
import torch
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset
torch.set_num_threads(1)
torch.distributed.init_process_group("gloo")
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
data = TensorDataset(torch.randn(12, 4), torch.randn(12, 1))
reduced = []
for inputs, wanted in DataLoader(data, batch_size=2, sampler=DistributedSampler(data)):
    loss = torch.nn.functional.mse_loss(model(inputs), wanted)
    loss.backward()
    optimizer.step()
    reduced.append(loss.detach())
    torch.distributed.all_reduce(reduced[-1])
torch.distributed.destroy_process_group()
"""
_PASSES = {"train_batch", "train_batch/forward", "train_batch/backward", "train_batch/optimizer_step"}


@unittest.skipUnless(_TORCH, "torch is not installed: deploy/install_packages.sh torch")
class TorchTest(ProductTest):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(dir=product.folder())
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)

    def run_script(self, text: str, *words: str, trial: str = "") -> str:
        (self.folder / "train.py").write_text(text)
        return by_run(self.folder, "--trial", trial or self.trial, product.python(), *words,
                      variables={"PYTHONPATH": _TORCH})  # fmt: skip

    def test_a_slow_dataset_shows_without_and_with_workers(self):
        waited: dict[int, float] = {}
        for worker_count in (0, 4):
            with self.subTest(workers=worker_count):
                trial = f"{self.trial}.{worker_count}"
                said = self.run_script(_SCRIPT, "train.py", str(worker_count), trial=trial)
                self.assertIn("['0.bias', '0.weight', '2.bias', '2.weight'] torch.Size([2, 1])", said)
                self.assertIn("stepwell: 8 steps", said)
                self.assertNotIn("not seen", said)
                self.assertNotIn("not recorded", said)
                found = self.samples(trial)
                in_steps = [s.name for s in found if s.batch >= 0 and s.group == "timing"]
                self.assertEqual({"step": 8, "dataloader_next": 8, "to_device": 8, **dict.fromkeys(_PASSES, 8)},
                                 {name: in_steps.count(name) for name in set(in_steps)})  # fmt: skip
                outside = [s.name for s in found if s.batch < 0 and s.labels.get("loader") != "eval"]
                # Each evaluation's model and the last one, each epoch's fetch that found its end, and its scheduler's step.
                self.assertEqual({"forward": 5, "dataloader_iter": 2, "dataloader_next": 2, "step_lr_schedulers": 2, "save_checkpoint": 2,
                                  "load_checkpoint": 1}, {name: outside.count(name) for name in set(outside)})  # fmt: skip
                evaluated = [s.name for s in found if s.labels.get("loader") == "eval"]
                self.assertEqual({"dataloader_iter": 2, "dataloader_next": 4}, {name: evaluated.count(name) for name in evaluated})
                fetches = [s.value for s in found if s.name == "dataloader_next" and s.batch >= 0]
                truth = [float(line.split()[-1]) for line in said.splitlines() if line.startswith("fetched in ")]
                self.assertTrue(all(ours <= theirs + 1e-5 for ours, theirs in zip(fetches, truth)), (fetches, truth))
                self.assertGreaterEqual(sum(fetches), 0.5 * sum(truth))
                if worker_count == 0:
                    self.assertGreaterEqual(min(fetches), 0.04, "two items of 20 ms each")
                    self.assertGreaterEqual(sum(fetches), 0.9 * sum(truth))
                waited[worker_count] = sum(fetches)
        self.assertLess(waited[4], 0.5 * waited[0])
        self.assert_shown()

    def assert_shown(self) -> None:
        """What a person reads of the two trials, each by itself and side by side."""
        shares = {}
        for worker_count in (0, 4):
            timings = json.loads(self.said_by("report", f"{self.trial}.{worker_count}", "--json"))["timings"]
            shares[worker_count] = {timing["name"]: timing["share"] for timing in timings if timing["in_step"]}
        self.assertEqual("dataloader_next", max(shares[0], key=shares[0].__getitem__), shares)
        self.assertLess(shares[4]["dataloader_next"], shares[0]["dataloader_next"])
        lines = self.said_by("compare", f"{self.trial}.0", f"{self.trial}.4").splitlines()
        (fetch,) = [line for line in lines if line.split()[:1] == ["dataloader_next"]]
        *_, difference, ratio = re.split("  +", fetch.strip())
        self.assertTrue(difference.startswith("-"), fetch)
        self.assertLess(float(ratio), 0.5, fetch)

    @staticmethod
    def said_by(*words: str) -> str:
        return subprocess.run([product.program(), *words, "--server", product.server()], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, text=True, check=True, timeout=product.WAIT_S).stdout  # fmt: skip

    def test_what_is_watched_is_stored_and_copied_as_it_was(self):
        self.run_script("""
import copy, io, pickle, torch
from stepwell.integrations._watch import Watches, watch_call
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
watches, calls = Watches(), []
for owner, name in ((model, "forward"), (optimizer, "step"), (scheduler, "step")):
    watches.add(watch_call(owner, name, lambda *_, name=name, **__: calls.append(name), lambda: None))
late = torch.optim.lr_scheduler.ConstantLR(optimizer)     # puts its wrapper over the optimizer's step
model(torch.randn(2, 4)).sum().backward()
optimizer.step(); scheduler.step(); late.step()
assert calls == ["forward", "step", "step"], calls
stored = io.BytesIO()
torch.save([scheduler.state_dict(), optimizer.state_dict(), model.state_dict(), model], stored)
assert b"stepwell" not in stored.getvalue()
stored.seek(0)
inputs = torch.randn(2, 4)
for copied in (torch.load(stored, weights_only=False)[3], copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
    torch.nn.init.zeros_(copied.weight); torch.nn.init.zeros_(copied.bias)
    assert type(copied) is torch.nn.Linear and copied(inputs).abs().sum() == 0 != model(inputs).abs().sum()
assert len(calls) == 6, calls
copy.deepcopy(optimizer); copy.deepcopy(scheduler)
watches.end()
kinds = [torch.nn.Linear, torch.optim.SGD, torch.optim.lr_scheduler.StepLR]
assert [type(it) for it in (model, optimizer, scheduler)] == kinds
torch.jit.script(model)
""", "-W", "error::UserWarning", "train.py")  # fmt: skip

    def test_a_compiled_model_is_compiled_whole_and_seen(self):
        """Hooked, and watched before and behind the compiler: one graph each, none of them with a break."""
        said = self.run_script("""
import sys, torch
if not hasattr(torch, "compile") or int(torch.__version__.split(".")[0]) < 2: print("no compiler"); sys.exit()
from torch.utils.data import DataLoader, TensorDataset
from stepwell.integrations._watch import watch_model
def trained(compiled, model, count=6):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for inputs, wanted in DataLoader(TensorDataset(torch.randn(count, 4), torch.randn(count, 1)), batch_size=2):
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(compiled(inputs.to("cpu")), wanted).backward()
        optimizer.step()
    counters = torch._dynamo.utils.counters
    print(counters["stats"]["unique_graphs"], dict(counters["graph_break"]), end=" ")
    torch._dynamo.reset(); counters.clear()
def made(): return torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1))
def compile(what): return torch.compile(what, backend="eager", fullgraph=True)
torch.set_num_threads(1)
calls = []
def watch(what): watch_model(what, lambda *_, **__: calls.append(1), lambda: None)
model = made(); trained(compile(model), model)
model = made(); trained(compile(lambda inputs: model(inputs).relu()), model)
model = made(); watch(model); trained(compile(model), model)
print(len(calls), end=" ")
model = made(); compiled = compile(model); watch(compiled); watch(model); trained(compiled, model)
print(len(calls), end=" ")
model = made(); watch(model); model.compile(backend="eager", fullgraph=True)
for _ in range(2): model(torch.randn(2, 4)).sum().backward()
print(len(calls))
import warnings
warnings.simplefilter("error")
model = made(); optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
@torch.compile(backend="eager")
def train_step(inputs):
    model(inputs).sum().backward()
    optimizer.step()
for _ in range(2): train_step(torch.randn(2, 4))
breaks = torch._dynamo.utils.counters["graph_break"]
print(torch._dynamo.utils.counters["stats"]["unique_graphs"], any("stepwell" in why or "Hooked" in why for why in breaks))
""", "train.py")  # fmt: skip
        if "no compiler" in said:
            self.skipTest("this torch has no compiler")
        self.assertIn("1 {} 1 {} 1 {} 0 1 {} 3 5\n2 False\n", said)
        found = [s.name for s in self.samples() if s.batch >= 0 and s.group == "timing"]
        # A function that is compiled is no module: of three steps nobody sees the forward pass.
        self.assertEqual({"step": 12, "dataloader_next": 12, **dict.fromkeys(_PASSES, 12), "train_batch/forward": 9},
                         {name: found.count(name) for name in set(found)})  # fmt: skip

    def test_checkpoints_of_other_libraries_are_seen(self):
        said = self.run_script("""
import sys, torch
try: from torch.distributed import checkpoint
except ImportError: print("no library"); sys.exit()
try: from safetensors.torch import load_file, save_file, save_model
except ImportError: print("no library"); sys.exit()
from torch.utils.data import DataLoader
model = torch.nn.Linear(2, 1)
for batch in DataLoader(torch.ones(2, 2)):
    model(batch).sum().backward()
    state = model.state_dict()
    save_file(state, "model.safetensors"); save_model(model, "whole.safetensors")
    checkpoint.save(state, checkpoint_id="folder")
    checkpoint.load(state, checkpoint_id="folder")
    print(sorted(load_file("model.safetensors")) == sorted(load_file("whole.safetensors")) == sorted(state))
""", "train.py")  # fmt: skip
        if "no library" in said:
            self.skipTest("this torch has no torch.distributed.checkpoint, or there is no safetensors")
        self.assertIn("True\nTrue\n", said)
        self.assertNotIn("not recorded", said)
        stored = [(s.name.rpartition("/")[2], s.value) for s in self.samples() if "checkpoint" in s.name and s.batch >= 0]
        counts = sorted((name, value) for name, value in stored if name.endswith(".count"))
        self.assertEqual([("load_checkpoint.count", 3.0)] * 2 + [("save_checkpoint.count", 3.0)] * 2, counts)
        self.assertEqual([], [s.name for s in self.samples() if "checkpoint/" in s.name], "what each calls is a part of it")

    def test_whatever_is_hooked_is_pickled_by_a_name_that_has_it(self):
        said = self.run_script("""
import pickle, torch
torch.optim.SGD([torch.zeros(1)], lr=0.1)
from stepwell import hooks
count = 0
for hook in hooks._torch_hooks.hooks:
    for owner, name, original, put, _ in hook._replaced:
        count += 1
        for protocol in range(2, 6):
            loaded = pickle.loads(pickle.dumps(getattr(owner, name), protocol))
            assert loaded == getattr(owner, name), (name, loaded)
        print("PICKLED", name, pickle.dumps(getattr(owner, name)).hex())
assert count > 20, count
""", "train.py")  # fmt: skip
        rows = [line.split()[1:] for line in said.splitlines() if line.startswith("PICKLED")]
        (self.folder / "read.py").write_text("""
import pickle, sys, torch
for line in sys.stdin:
    name, stored = line.split()
    print(name, pickle.loads(bytes.fromhex(stored)))
""")
        alone = {key: value for key, value in os.environ.items() if not key.startswith(("STEPWELL_", "PYTHON"))}
        done = subprocess.run([sys.executable, "-s", "read.py"], input="".join(" ".join(row) + "\n" for row in rows),
                              stdout=subprocess.PIPE, text=True, check=True, cwd=self.folder,
                              env={**alone, "PYTHONPATH": _TORCH})  # fmt: skip
        self.assertEqual([name for name, _ in rows], [line.split()[0] for line in done.stdout.splitlines()])
        self.assertNotIn("stepwell", done.stdout)

    def test_what_is_hooked_is_sent_to_workers_that_are_spawned(self):
        said = self.run_script("""
import multiprocessing, torch
from torch.utils.data import DataLoader, Dataset
def init(self, load): self.load = load
def get(self, index): return self.load(f"{index}.pt")
Files = type("Files", (Dataset,), {"__init__": init, "__getitem__": get, "__len__": lambda self: 2})
if __name__ == "__main__":
    for index in range(2): torch.save(torch.full((1,), index), f"{index}.pt")
    print([int(it) for it in DataLoader(Files(torch.load), num_workers=1, multiprocessing_context="spawn")])
    with multiprocessing.get_context("spawn").Pool(1) as pool: print(pool.map(torch.load, ["1.pt"]))
""", "train.py")  # fmt: skip
        self.assertIn("[0, 1]\n", said)
        self.assertIn("[tensor([1])]\n", said)

    def test_torchscript_takes_what_is_hooked(self):
        said = self.run_script("""
import torch
assert type(torch.autograd.backward).__name__ == "Hooked"
@torch.jit.script
def step(x: torch.Tensor):
    torch.autograd.backward([(x * x).sum()])
@torch.jit.script
def step_of_a_method(x: torch.Tensor) -> float:
    (x * x).sum().backward()
    torch.save(x, "scripted.pt")
    return x.to("cpu").sum().item()
x = torch.ones(2, requires_grad=True)
step(x)
print(x.grad.tolist(), step_of_a_method(x), x.grad.tolist())
traced = torch.jit.trace(torch.nn.Linear(2, 1), x)
print(traced(x).shape)
""", "train.py")  # fmt: skip
        self.assertIn("[2.0, 2.0] 2.0 [4.0, 4.0]\n", said)
        self.assertIn("torch.Size([1])", said)
        self.assertNotIn("TorchScript", said)

    def test_keywords_and_tensors_of_any_kind_are_the_trainings(self):
        said = self.run_script("""
import torch
from torch.utils.data import DataLoader
def forward(self, **keywords): return sorted(keywords)
def told(kind, function, types, args=(), keywords=None):
    asked.append(getattr(function, "__name__", str(function)))
    return super(Mine, kind).__torch_function__(function, types, args, keywords or {})
Wide = type("Wide", (torch.nn.Module,), {"forward": forward})
Mine = type("Mine", (torch.Tensor,), {"__torch_function__": classmethod(told)})
asked = []
model, mine = Wide(), torch.ones(1).as_subclass(Mine)
for batch in DataLoader([1, 2]):
    print(model(original=1, tensor=2, kind=3, function=4, handler=5))
    asked.clear()
    mine.item(); mine.tolist(); mine.to("cpu"); mine.cpu(); torch.ones(1).to(mine)
    print(asked)
""", "train.py")  # fmt: skip
        self.assertIn("['function', 'handler', 'kind', 'original', 'tensor']\n['item', 'tolist', 'to', 'cpu', 'to']\n" * 2, said)

    def test_ranks_of_torchrun_are_one_trial(self):
        # Debian's launcher, of torch 1.13 on Python 3.11, takes no redirection but of stdout alone.
        said = self.run_script(_RANKED, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2",
                               "--redirects=1", "--tee=1", f"--log_dir={self.folder}", "train.py")  # fmt: skip
        self.assertEqual(1, said.count("stepwell: 3 steps"), "the launcher is no rank, and rank 0 alone speaks")
        found = self.samples()
        for name in ("step", "reduce_metrics", *_PASSES):
            self.assertEqual([("0", 0), ("0", 1), ("0", 2), ("1", 0), ("1", 1), ("1", 2)],
                             sorted((s.labels["rank"], s.batch) for s in found if s.name == name), name)  # fmt: skip
        self.assertEqual({1}, {s.attempt for s in found})

    def test_ranks_that_are_spawned_know_theirs(self):
        ranked = _RANKED.replace('init_process_group("gloo")', 'init_process_group("gloo", rank=rank, world_size=2)')
        two_lines = ranked.replace("model = ", "import stepwell\nstepwell.init()\nmodel = ", 1)
        for name, script, words in (("untouched", ranked, ("train.py",)), ("two lines", two_lines, ("train.py",))):
            with self.subTest(name):
                trial = f"{self.trial}.{name[:3]}"
                body = "\n".join("    " + line for line in script.splitlines())
                text = f"""
import os, sys, torch
def main(rank):
{body}
if __name__ == "__main__":
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=sys.argv[1])
    torch.multiprocessing.spawn(main, nprocs=2)
"""
                if name == "untouched":
                    said = self.run_script(text, *words, str(self.free_port()), trial=trial)
                else:
                    _, said = self.run_trial(text.replace("sys.argv[1]", repr(str(self.free_port()))), as_file=True,
                                             variables={"PYTHONPATH": _TORCH, "STEPWELL_TRIAL": trial})  # fmt: skip
                self.assertEqual(1, said.count("stepwell: 3 steps"), "rank 0 alone speaks")
                found = self.samples(trial)
                self.assertEqual(["0"] * 3 + ["1"] * 3, sorted(s.labels["rank"] for s in found if s.name == "step"))

    @staticmethod
    def free_port() -> int:
        import socket

        with socket.socket() as sock:
            sock.bind(("127.0.0.1", 0))
            return sock.getsockname()[1]


if __name__ == "__main__":
    unittest.main()
