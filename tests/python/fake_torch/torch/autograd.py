def backward(tensors):
    if tensors is None:
        raise RuntimeError("does not require grad")
