import torch


def save(what, path):
    return torch.save(what, path)


def load(what, path):
    return torch.load(path)
