"""Checks of a stranger's kernels: `tilestack init` writes a repository of them, `tilestack check` runs its matrix.toml.

`table.py` reads that file, `run.py` runs its cells, `new.py` writes the template/.
"""
