import torch
from torch import nn
from torch.utils.data import DataLoader

import stepwell
from slow import Slow
from stepwell.integrations.pytorch import TrainingLoop

torch.set_num_threads(1)
model = nn.Sequential(nn.Flatten(), nn.Linear(3072, 512), nn.ReLU(), nn.Linear(512, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 10)
loader, eval_loader = DataLoader(Slow(640), batch_size=32), DataLoader(Slow(128), batch_size=32)
with stepwell.init(trial="pytorch", hooks=False) as run:
    training = TrainingLoop(run)
    for epoch in range(2):
        for batch_index, (inputs, targets) in training.steps(loader, epoch=epoch):
            with training.to_device:
                inputs, targets = inputs.to("cpu"), targets.to("cpu")
            with training.train_batch:
                with training.forward:
                    loss = nn.functional.cross_entropy(model(inputs), targets)
                with training.backward:
                    loss.backward()
                with training.optimizer_step:
                    optimizer.step()
                    optimizer.zero_grad()
            with training.step_lr_schedulers:
                scheduler.step()
            with training.from_device:
                training.record("loss", loss.item())
        with torch.no_grad():
            for inputs, targets in training.evaluate(eval_loader):
                model(inputs)
