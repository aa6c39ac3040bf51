"""Attention: of a prompt, and of one token each to a cache."""
