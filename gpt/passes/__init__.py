"""Parts of a forward pass or a decoding step that all families share: memory, plans, caches, layers."""
