"""Loaders that fetch a batch ahead of the one that they hand out, as Accelerate's."""


def send_to_device(batch, device):
    return batch


class DataLoaderShard:
    def __init__(self, loader, device=None):
        self.base_dataloader = loader
        self.device = device
        self.iteration = 0

    def __iter__(self):
        self.end_of_dataloader = False
        items = self.base_dataloader.__iter__()
        try:
            current = next(items)
        except StopIteration:
            return
        while True:
            try:
                if self.device is not None:
                    current.to(self.device)
                following = next(items)
            except StopIteration:
                self.end_of_dataloader = True
                yield current
                break
            yield current
            current = following
        self.iteration += 1


class DataLoaderDispatcher:
    """One rank fetches two of the loader's for each batch, for all; of an uneven epoch the last batch has one, and no fetch
    finds the end."""

    def __init__(self, loader):
        self.base_dataloader = loader

    def _fetch_batches(self, items):
        found = [item for _, item in zip(range(2), items)]
        self._stop_iteration = len(found) < 2
        return found, [found or None, not found]

    def __iter__(self):
        self.end_of_dataloader = False
        items = self.base_dataloader.__iter__()
        following, told = self._fetch_batches(items)
        is_over = told[0] is None
        while not is_over:
            current, is_over = following, self._stop_iteration
            if not is_over:
                following, told = self._fetch_batches(items)
                is_over = told[0] is None
            self.end_of_dataloader = is_over
            yield current
