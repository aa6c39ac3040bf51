"""Kernels of source `cute` beside a library's: what is compiled, and how long it takes on a GPU."""
