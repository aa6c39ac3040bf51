"""The references that kernels are compared with: each op in numpy, in float64 and in the dtype of the kernel."""
