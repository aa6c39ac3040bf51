"""A bundle's entries as functions of C++."""
