"""From a kernel source to a cubin."""
