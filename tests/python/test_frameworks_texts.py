"""What profilers of frameworks write as text, kept as it came: DeepSpeed's flops profiler."""

import pathlib
import subprocess
import tempfile
import unittest

import product
from frameworks import FrameworkTest
from product import WAIT_S
from test_frameworks import _TORCH as TORCH
from test_torch_profiler import TracesTest


class FlopsProfilerTest(FrameworkTest, TracesTest):
    module = "deepspeed"

    def test_its_text_is_listed_and_comes_back_byte_for_byte(self):
        scratch = tempfile.TemporaryDirectory(dir=product.folder())
        self.addCleanup(scratch.cleanup)
        folder = pathlib.Path(scratch.name)
        # By the page of docs/profilers.
        self.train(TORCH + """
    import os, socket, sys, warnings
    warnings.filterwarnings("ignore", "(?!stepwell)")
    with socket.create_server(("127.0.0.1", 0)) as free: port = str(free.getsockname()[1])
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=port, RANK="0", LOCAL_RANK="0", WORLD_SIZE="1",
                      DS_ACCELERATOR="cpu")
    import deepspeed, stepwell
    sys.modules["deepspeed.comm.torch"].build_shm_op = lambda: None  # it would be compiled
    deepspeed.init_distributed("gloo", auto_mpi_discovery=False)
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))
    text = os.environ["FOLDER"] + "/flops.txt"
    engine, _, _, _ = deepspeed.initialize(
        model=model, optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        config={"train_micro_batch_size_per_gpu": 4, "steps_per_print": 10**9,
                "flops_profiler": {"enabled": True, "profile_step": 3, "output_file": text}})
    with stepwell.init() as run:
        for index, (inputs, targets) in run.steps(loader()):
            engine.backward(nn.functional.cross_entropy(engine(inputs), targets))
            engine.step()
            if index == 4: assert run.upload_trace(text, first_batch=3, last_batch=3)
    """, FOLDER=str(folder))
        written = (folder / "flops.txt").read_bytes()
        self.assertIn(b"Flops Profiler", written)
        told = ["name", "format", "first_batch", "last_batch"]
        found: list[list[object]] = []

        def is_stored() -> bool:
            found[:] = [[trace["header"].get(key) for key in told] for trace in self.traces() if trace["state"] == "complete"]
            return bool(found)

        self.assertTrue(self.eventually(is_stored), self.traces())
        self.assertEqual([["flops.txt", "text", 3, 3]], found)
        subprocess.run([product.program(), "trace", "get", self.trial, "--server", product.server(), "--directory", str(folder / "got")],
                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True, timeout=WAIT_S)  # fmt: skip
        (got,) = [path for path in (folder / "got").rglob("*") if path.is_file()]
        self.assertEqual(written, got.read_bytes())


if __name__ == "__main__":
    unittest.main()
