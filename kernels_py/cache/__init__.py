"""Where a position is in a cache of keys and values, and what appends to one."""
