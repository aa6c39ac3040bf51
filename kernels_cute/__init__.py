"""Kernels in CuTe: the front end of `toolchain.cute.dsl`."""
