"""Everything that we make, made twice under conditions that differ, and compared bit by bit: `nox -s reproduce`.

`variation` how the two builds differ · `artefacts` what is made · `building` the copies of the checkout, the commands ·
`comparing` which files differ, and by what · `report` the table, report.json and report.md.
"""
