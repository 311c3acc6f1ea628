"""Do the hooks tell a GPU's time without waiting for it? On a machine with a GPU, torch and the package installed:

    python3 tests/device/torch_hooks.py

Beside what the hooks tell stands the same by torch itself, which waits after each pass. Then a training that is
captured as a graph. Exit: 0 they agree, 1 they do not, 69 there is no GPU of torch's here.
"""

import os
import statistics
import sys
import tempfile

import torch

if not torch.cuda.is_available():
    print("torch sees no GPU here")
    sys.exit(69)

import stepwell
from stepwell._load import core

_BATCHES = 60
told: dict[str, list[float]] = {}
record_at = core.record_at


def collect(series, batch, time_us, value):
    told.setdefault(repr(series), []).append(value)
    record_at(series, batch, time_us, value)


def by_torch(model, batch) -> float:
    """Seconds of a forward pass, waited for."""
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    model(batch)
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end) / 1000


def main() -> int:
    core.record_at = collect
    os.environ["STEPWELL_QUIET"] = "1"
    with tempfile.TemporaryDirectory() as folder:
        run = stepwell.init(server="offline", spool_dir=os.path.join(folder, "spool"), start_agent=False)
        model = torch.nn.Sequential(*[torch.nn.Linear(4096, 4096) for _ in range(8)]).cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
        batch = torch.randn(2048, 4096, device="cuda")
        truth = statistics.median(by_torch(model, batch) for _ in range(20))
        for _ in torch.utils.data.DataLoader(range(_BATCHES)):
            optimizer.zero_grad()
            model(batch).sum().backward()
            optimizer.step()
        torch.cuda.synchronize()
        for _ in torch.utils.data.DataLoader(range(3)):
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                model(batch)
            graph.replay()
        run.close(0)
    forward = statistics.median(told["<stepwell.Series 'forward'>"])
    counts = {name: len(values) for name, values in told.items()}
    print(f"forward by the hooks {1000 * forward:.3f} ms, by torch {1000 * truth:.3f} ms; samples {counts}")
    return 0 if abs(forward / truth - 1) < 0.1 and min(counts.values()) >= _BATCHES - 2 else 1


if __name__ == "__main__":
    sys.exit(main())
