"""Element types, and the arithmetic that numpy lacks: exact results, roundings, chains of sums."""
