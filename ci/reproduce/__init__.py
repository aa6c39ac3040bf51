"""Builds every artefact twice under different conditions and compares the results bit by bit: `nox -s reproduce`.

`variation`: how the two builds differ. `artefacts`: what is built. `building`: the copies of the checkout, and the
commands. `comparing`: which files differ, and why. `report`: the table, report.json and report.md.
"""
