"""Attention, of a prompt and of one token to a cache."""
