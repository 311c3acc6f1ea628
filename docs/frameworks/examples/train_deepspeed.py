import os
import sys

os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29511", RANK="0", LOCAL_RANK="0", WORLD_SIZE="1", DS_ACCELERATOR="cpu")
import deepspeed
import torch
from torch import nn
from torch.utils.data import DataLoader

from slow import Slow
from stepwell.integrations.deepspeed import watch

torch.set_num_threads(1)
sys.modules["deepspeed.comm.torch"].build_shm_op = lambda: None  # it would be compiled, for minutes
deepspeed.init_distributed("gloo", auto_mpi_discovery=False)
model = nn.Sequential(nn.Flatten(), nn.Linear(3072, 512), nn.ReLU(), nn.Linear(512, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
engine, _, loader, _ = deepspeed.initialize(
    model=model, optimizer=optimizer, training_data=Slow(640), lr_scheduler=torch.optim.lr_scheduler.StepLR(optimizer, 10),
    config={"train_micro_batch_size_per_gpu": 32, "steps_per_print": 10**9})
eval_loader = DataLoader(Slow(128), batch_size=32)
watched = watch(engine, eval_loader=eval_loader)
for epoch in range(2):
    for inputs, targets in loader:
        engine.backward(nn.functional.cross_entropy(engine(inputs), targets))
        engine.step()
    engine.eval()
    for inputs, targets in eval_loader:
        engine(inputs)
    engine.train()
watched.end()
