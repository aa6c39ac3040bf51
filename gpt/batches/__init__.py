"""Batches that texts join and leave."""
