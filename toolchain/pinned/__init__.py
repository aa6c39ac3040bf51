"""What we use of others, pinned: tools, toolkits, stacks, and which of their versions fit together."""
