"""Which of the kernels that tilestack has are compiled, and the bundles made of them."""
