"""Searches for the fastest constants and compiler hints of kernels on a GPU. Variants can be compiled on a machine
without a GPU and measured on one without a compiler; the fastest go to `entries/<target>.toml`. See docs/tuning.md."""
