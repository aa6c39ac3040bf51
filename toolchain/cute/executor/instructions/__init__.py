"""What each instruction does: barriers, copies, products, tensor memory, and the table of all."""
