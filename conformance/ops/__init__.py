"""A case of an op: its inputs, its launch, its references, and whether the result is right."""
