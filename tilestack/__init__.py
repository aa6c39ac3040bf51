"""The `tilestack` command: thin, one module per group of commands."""
