"""What is read off an entry before it runs: fields, values that may be unspecified, NaNs, counters, waits."""
