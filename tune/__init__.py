"""Searching the constants and compiler hints of kernels on a GPU: variants are compiled where there is no GPU, measured
where there is no compiler, and the fastest written to `entries/<target>.toml`. See docs/tuning.md."""
