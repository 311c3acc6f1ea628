import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader

from slow import Slow
from stepwell.integrations.accelerate import StepwellTracker, watch

torch.set_num_threads(1)
accelerator = Accelerator(cpu=True, log_with=StepwellTracker())
accelerator.init_trackers("images", config={"lr": 0.01})
model = nn.Sequential(nn.Flatten(), nn.Linear(3072, 512), nn.ReLU(), nn.Linear(512, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
model, optimizer, loader, eval_loader, scheduler = accelerator.prepare(
    model, optimizer, DataLoader(Slow(640), batch_size=32), DataLoader(Slow(128), batch_size=32),
    torch.optim.lr_scheduler.StepLR(optimizer, 10))
watched = watch(accelerator, loader, eval_loader)
for epoch in range(2):
    for inputs, targets in loader:
        loss = nn.functional.cross_entropy(model(inputs), targets)
        accelerator.backward(loss)
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad()
        accelerator.log({"loss": accelerator.gather(loss).mean()})
    with torch.no_grad():
        for inputs, targets in eval_loader:
            accelerator.gather_for_metrics(model(inputs))
accelerator.end_training()
watched.end()
