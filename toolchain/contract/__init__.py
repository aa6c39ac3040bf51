"""What a kernel promises to those who launch it: entries, ops, targets, sources, artifacts, policies."""
