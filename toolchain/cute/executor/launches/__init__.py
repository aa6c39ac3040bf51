"""Launches: arguments, blocks by turns, several ranks, entries of a bundle."""
