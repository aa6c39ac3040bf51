"""Products of rows by a weight: the parts that they share, and a file for each schedule."""
