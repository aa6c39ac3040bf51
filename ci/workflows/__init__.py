"""Runs a workflow of .github/workflows on this machine, with act: `nox -s workflows -- ci --event pull_request`.

`repository.py` makes a clone with the branches and the event that GitHub would show a run, `actions.py` finds the
actions that it uses or what stands for them, `runner.py` runs act and reads what it says, `show.py` tells it.
"""
