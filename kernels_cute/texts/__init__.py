"""A decode step of GPT-2 for eight sequences in one kernel: step.py."""
