class LRScheduler:
    def __init__(self):
        self._step_count = 0
        self.step()

    def step(self):
        self._step_count += 1


class Chained(LRScheduler):
    def __init__(self):
        self.inner = LRScheduler()
        super().__init__()

    def step(self):
        self.inner.step()
        super().step()
