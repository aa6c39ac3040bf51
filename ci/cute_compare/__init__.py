"""Our layout algebra beside CuTe's C++ headers, on random layouts: `python -m ci.cute_compare --cutlass DIR`.

g++ evaluates CuTe's functions while it compiles: nothing is linked or run, and no GPU is needed. Two results are the
same if they are the same function, whatever their modes. The checkout of CUTLASS stays where it is; nothing of it is
copied.
"""
