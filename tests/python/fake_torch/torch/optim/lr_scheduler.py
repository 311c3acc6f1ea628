import types


class LRScheduler:
    """Stores all that is in it but the optimizer, and puts a wrapper into that, as torch's does."""

    def __init__(self, optimizer=None):
        self.optimizer = optimizer
        if optimizer is not None and not hasattr(optimizer.step, "counts"):
            inner = optimizer.step

            def counted(optimizer, *args):
                optimizer.count = getattr(optimizer, "count", 0) + 1
                return inner(*args)

            counted.counts = True
            optimizer.step = types.MethodType(counted, optimizer)
        self._step_count = 0
        self.step()

    def step(self):
        self._step_count += 1

    def state_dict(self):
        return {key: value for key, value in vars(self).items() if key != "optimizer"}


class Chained(LRScheduler):
    def __init__(self):
        self.inner = LRScheduler()
        super().__init__()

    def step(self):
        self.inner.step()
        super().step()
