import torch
from composer import Trainer
from composer.callbacks import SpeedMonitor
from composer.models import ComposerModel
from torch import nn
from torch.utils.data import DataLoader

from slow import Slow
from stepwell.integrations.composer import StepwellCallback


class Model(ComposerModel):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Flatten(), nn.Linear(3072, 512), nn.ReLU(), nn.Linear(512, 10))

    def forward(self, batch):
        return self.layers(batch[0])

    def loss(self, outputs, batch):
        return nn.functional.cross_entropy(outputs, batch[1])

    def eval_forward(self, batch, outputs=None):
        return self.forward(batch)

    def get_metrics(self, is_train=False):
        return {}

    def update_metric(self, batch, outputs, metric):
        pass


torch.set_num_threads(1)
model = Model()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
trainer = Trainer(model=model, train_dataloader=DataLoader(Slow(640), batch_size=32),
                  eval_dataloader=DataLoader(Slow(128), batch_size=32), optimizers=optimizer,
                  schedulers=torch.optim.lr_scheduler.StepLR(optimizer, 10), step_schedulers_every_batch=True,
                  max_duration="2ep", device="cpu", progress_bar=False, callbacks=[SpeedMonitor(), StepwellCallback()])
trainer.fit()
trainer.close()
