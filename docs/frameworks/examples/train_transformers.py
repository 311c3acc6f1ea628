import torch
from torch import nn
from transformers import Trainer, TrainingArguments

from slow import Slow
from stepwell.integrations.transformers import StepwellCallback, watch


class Named(Slow):
    def __getitem__(self, index):
        pixels, label = super().__getitem__(index)
        return {"pixels": pixels, "labels": label}


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Flatten(), nn.Linear(3072, 512), nn.ReLU(), nn.Linear(512, 10))

    def forward(self, pixels, labels=None):
        logits = self.layers(pixels)
        return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}


torch.set_num_threads(1)
arguments = TrainingArguments("checkpoints", num_train_epochs=2, per_device_train_batch_size=32, per_device_eval_batch_size=32,
                              eval_strategy="epoch", save_strategy="epoch", use_cpu=True, report_to=[], disable_tqdm=True)
trainer = Trainer(Model(), arguments, train_dataset=Named(640), eval_dataset=Named(128), callbacks=[StepwellCallback()])
watch(trainer)
trainer.train()
