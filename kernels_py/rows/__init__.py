"""What works row by row: norms, softmax, GELU, embeddings, the next token."""
