"""A decode step of GPT-2 in one kernel: step.py."""
