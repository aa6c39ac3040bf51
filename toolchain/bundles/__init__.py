"""What is shipped: a bundle, its archive, the commit that it was made from."""
