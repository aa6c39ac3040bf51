"""The `cuda_tile` dialect on xDSL: types, attributes, operations, locations and the verifier."""

from .verify import verify

__all__ = ["verify"]
