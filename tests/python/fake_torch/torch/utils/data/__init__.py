from torch.utils.data.dataloader import DataLoader, get_worker_info  # noqa: F401
