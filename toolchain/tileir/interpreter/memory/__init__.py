"""Memory while blocks run: allocations, views, pointers, what each access saw, and races."""
