"""The models in numpy, and what a text's tokens cost."""
