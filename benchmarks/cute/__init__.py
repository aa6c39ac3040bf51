"""Kernels of source `cute` beside a library's: what is compiled, and how long it takes on a GPU."""

TARGET = "sm_90"  # here and not in kernels.py, which needs the compiler: a machine that only measures has none
