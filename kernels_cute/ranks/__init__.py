"""Products and gathers that send to, or read from, other GPUs."""
