"""A kernel as steps, and what the steps compute from registers to registers."""
