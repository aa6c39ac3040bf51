"""Each operation on the interpreter and on a GPU, bit by bit: docs/agreement.md."""
