"""Rows of results.json: what they say, where they come from, which are asked for."""
