"""Measures our kernels and model beside PyTorch's on a GPU, and the toolchain on a CPU. See docs/benchmarks.md."""
