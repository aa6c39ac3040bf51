"""Whether a commit's kernels are as fast as another's: docs/gate.md."""
