worker_info = None  # of this process


def get_worker_info():
    return worker_info


class _BaseDataLoaderIter:
    def __init__(self, loader):
        self.items = iter(loader.items)
        self.loader = loader
        self._index_sampler = loader.batch_sampler
        self._num_yielded = 0

    def __iter__(self):
        return self

    def __len__(self):
        return len(self.loader.items)

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
        self._iterator = None
        self.batch_sampler = object()

    def __iter__(self):
        if self._iterator is None or not self.persists:
            self._iterator = _BaseDataLoaderIter(self)
        self._iterator.items = iter(self.items)
        self._iterator._num_yielded = 0
        begun = self._iterator
        if not self.persists:
            self._iterator = None
        return begun

    def __len__(self):
        return len(self.items)
