"""The site of docs/: what it needs beside Sphinx, and the pages that are generated."""
