"""The forward pass as cells of the conformance matrix."""
