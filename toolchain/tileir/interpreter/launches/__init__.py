"""Launches: bytecode made ready, grids, blocks that wait for each other, and what is said of a fault."""
