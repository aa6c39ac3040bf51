"""How times changed over commits and machines, as one page of the nights' results: docs/trends.md."""
