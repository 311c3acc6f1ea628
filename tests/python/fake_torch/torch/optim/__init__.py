from torch.optim import lr_scheduler  # noqa: F401


class Optimizer:
    def __init__(self):
        step = type(self).step
        if not getattr(step, "hooked", False):

            def hooked(self, *args):
                return step(self, *args)

            hooked.hooked = True
            type(self).step = hooked


    def __getstate__(self):
        return {}


class SGD(Optimizer):
    def step(self):
        return "stepped"
