"""A model's weights on the host: read, made, folded, rounded to 8 bits, shared out."""
