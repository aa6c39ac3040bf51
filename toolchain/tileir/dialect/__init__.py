"""The `cuda_tile` dialect on xDSL: types, attributes, operations, locations and the verifier."""
