"""The compile cache: what a compile made is kept, here and on a shared store."""
