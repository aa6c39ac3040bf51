"""The support table: which tileiras compiles which bytecode for which target, and which of it runs where."""
