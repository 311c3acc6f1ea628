"""As much of torch as is hooked, for tests where there is none. Its GPU is done with what it was given when
`cuda.finish()` is called."""

import contextlib

from torch import autograd, cuda, distributed, nn, optim, utils  # noqa: F401
from torch.serialization import load, save  # noqa: F401

_is_grad_enabled = True


def is_grad_enabled():
    return _is_grad_enabled


@contextlib.contextmanager
def no_grad():
    global _is_grad_enabled
    _is_grad_enabled = False
    try:
        yield
    finally:
        _is_grad_enabled = True


class _TensorBase:
    def __init__(self, device="cpu"):
        self.device = device

    @property
    def is_cpu(self):
        return self.device == "cpu"

    def to(self, device=None, *, dtype=None):
        return Tensor(device or self.device)

    def cuda(self):
        return Tensor("cuda")

    def cpu(self):
        return Tensor("cpu")

    def item(self):
        return 0.5

    def tolist(self):
        return [0.5]

    def pin_memory(self):
        return self


class Tensor(_TensorBase):
    def backward(self):
        autograd.backward(self)


class Parameter(Tensor):
    pass


nn.Parameter = Parameter
