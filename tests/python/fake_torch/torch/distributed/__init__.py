_rank = None


def is_available():
    return True


def is_initialized():
    return _rank is not None


def init(rank):
    global _rank
    _rank = rank


def get_rank():
    return _rank


def get_world_size():
    return 2


def all_reduce(tensor):
    return tensor
