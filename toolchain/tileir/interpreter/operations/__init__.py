"""Each operation as Python: how it is generated, and what it computes."""
