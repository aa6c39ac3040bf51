"""The kernels that the study of one op compares."""
