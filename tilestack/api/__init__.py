"""What `import tilestack as ts` offers: kernels from files, functions and bundles, launched on any library's arrays."""
