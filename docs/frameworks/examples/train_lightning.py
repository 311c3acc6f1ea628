import pytorch_lightning as pl
import torch
from torch import nn
from torch.utils.data import DataLoader

from slow import Slow
from stepwell.integrations.lightning import StepwellCallback


class Model(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Flatten(), nn.Linear(3072, 512), nn.ReLU(), nn.Linear(512, 10))

    def training_step(self, batch, index):
        return nn.functional.cross_entropy(self.layers(batch[0]), batch[1])

    def validation_step(self, batch, index):
        self.log("val_loss", nn.functional.cross_entropy(self.layers(batch[0]), batch[1]))

    def configure_optimizers(self):
        optimizer = torch.optim.SGD(self.parameters(), lr=0.01)
        return [optimizer], [{"scheduler": torch.optim.lr_scheduler.StepLR(optimizer, 10), "interval": "step"}]


torch.set_num_threads(1)
trainer = pl.Trainer(max_epochs=2, accelerator="cpu", logger=False, enable_progress_bar=False, enable_model_summary=False,
                     callbacks=[StepwellCallback()])
trainer.fit(Model(), DataLoader(Slow(640), batch_size=32), DataLoader(Slow(128), batch_size=32))
