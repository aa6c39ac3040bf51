"""The state of blocks while they run: warps, memories, clocks, and each access checked."""
