"""What stores tensors beside torch.save."""
