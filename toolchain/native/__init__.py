"""The native toolchain: container images, an engine that runs them, and what is built in them with Conan."""
