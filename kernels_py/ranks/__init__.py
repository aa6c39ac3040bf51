"""Sums and products of several GPUs, which meet through peer memory."""
