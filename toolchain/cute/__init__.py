"""CuTe: the third kernel source. Layouts, tiled copies and matrix products, lowered through NVVM to PTX."""
