"""A launch: the code that it runs, and where: on a GPU, on a CPU, once more, or kept for another machine."""
