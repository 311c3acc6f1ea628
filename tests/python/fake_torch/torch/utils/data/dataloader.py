worker_info = None  # of this process


def get_worker_info():
    return worker_info


class _BaseDataLoaderIter:
    def __init__(self, loader):
        self.items = iter(loader.items)
        self._index_sampler = loader.batch_sampler
        self._num_yielded = 0

    def __iter__(self):
        return self

    def __next__(self):
        item = next(self.items)
        if isinstance(item, Exception):
            raise item
        self._num_yielded += 1
        return item


class DataLoader:
    """With `persists` its workers, and so its iterator, live from epoch to epoch."""

    def __init__(self, items, persists=False):
        self.items = items
        self.persists = persists
        self.kept = None
        self.batch_sampler = object()

    def __iter__(self):
        if self.kept is None or not self.persists:
            self.kept = _BaseDataLoaderIter(self)
        self.kept.items = iter(self.items)
        self.kept._num_yielded = 0
        kept = self.kept
        if not self.persists:
            self.kept = None
        return kept

    def __len__(self):
        return len(self.items)
