"""Checkpoints as others keep them: safetensors, GGUF, Hugging Face's names."""
