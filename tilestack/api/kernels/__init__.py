"""Kernels to launch, from files, bundles and functions."""
