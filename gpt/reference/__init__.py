"""What the kernels are judged by: the same ops in numpy, in float64 and as an eager framework computes them."""
