"""Collectives from 1 KB to 64 MB on several GPUs: ours beside NCCL's and those of PyTorch's symmetric memory."""
