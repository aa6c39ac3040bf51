"""Rounding to 8-bit floats and integers, products of them, and of 16 bits by weights in 8."""
