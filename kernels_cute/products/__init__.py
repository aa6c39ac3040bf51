"""Products of rows by a weight, and what is done with their results."""
