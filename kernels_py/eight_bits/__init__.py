"""Products of 8-bit floats and integers, and of 16 bits by weights in 8."""
