"""GPT-2 and Llama: a layer's launches, and how weights lie on a device."""
