"""A decode step of GPT-2 for up to eight sequences in one kernel: step.py."""
