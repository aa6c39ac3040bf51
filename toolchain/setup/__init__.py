"""Making the toolchain: what `nox -s build_toolchain` and `nox -s update_pins` run. Needs only Python and uv."""
