"""What the kernels are judged by: each op in numpy, in float64 and as an eager framework computes it."""
