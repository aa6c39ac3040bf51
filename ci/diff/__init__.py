"""Compares what compiled kernels use of a GPU, and finds what made a difference: docs/diff.md."""
