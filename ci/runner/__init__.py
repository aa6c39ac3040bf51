"""A GPU runner: set-up of a bare Debian or Ubuntu, the check before each job, and serving jobs one at a time.

All of it runs on a bare Python, because it is there before any checkout: `python3 -m ci.runner`. docs/runner.md.
"""
