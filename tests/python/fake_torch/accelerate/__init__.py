import torch  # noqa: F401  # before its loaders, as the real one does

from accelerate import data_loader  # noqa: F401
