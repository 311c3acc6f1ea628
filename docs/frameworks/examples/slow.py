import time

import torch
from torch.utils.data import Dataset


class Slow(Dataset):
    """Of images that come from a file server: a millisecond each."""

    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        time.sleep(0.001)
        return torch.randn(3, 32, 32), index % 10
