"""What the passes of every family are made of: memory, plans, caches, layers."""
