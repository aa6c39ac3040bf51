"""Passes on a parsed module, each with a name: `PASSES`.

Those of an entry take what they need of its EntrySpec. `specialize` runs them in order.
"""
