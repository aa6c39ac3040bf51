"""An image as a file that `docker load` and `podman load` take, with an id that is the same wherever it is made.

`docker import` stamps the time into the image's configuration; the id is the sha256 of that configuration. The format
is the docker-archive of the Docker Image Specification v1.2: manifest.json, the configuration, one tar per layer.

An engine with containerd's image store, as Docker has from 29 on, gives images ids of its own and forgets these: so
the archive has a tag that says it, too.
"""

from __future__ import annotations

import datetime
import hashlib
import io
import json
import platform
import tarfile
from collections.abc import Mapping
from pathlib import Path

from ..pinned.pins import file_sha256

FORMAT = 2  # of the archive: another one when what is written for the same image changes
MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}


def tag_of(image_id: str) -> str:
    """The tag that says an image's id, `sha256:...`."""
    return f"tilestack:{image_id.removeprefix('sha256:')}"


def configuration(layer_sha256: str, *, epoch: int, labels: Mapping[str, str]) -> bytes:
    """The image's configuration in JSON, always the same bytes. `epoch` is in seconds."""
    created = datetime.datetime.fromtimestamp(epoch, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    value = {
        "architecture": MACHINES[platform.machine()],
        "config": {
            "Cmd": ["/bin/sh"],
            "Env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C.UTF-8"],
            "Labels": dict(sorted(labels.items())),
        },
        "created": created,
        "history": [{"created": created, "created_by": "mmdebstrap"}],
        "os": "linux",
        "rootfs": {"diff_ids": [f"sha256:{layer_sha256}"], "type": "layers"},
    }
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def write(layer: Path, output: Path, *, tag: str, epoch: int, labels: Mapping[str, str]) -> str:
    """Write the image whose only layer is the tar `layer`; returns its id, `sha256:...`."""
    sha256 = file_sha256(layer)
    config = configuration(sha256, epoch=epoch, labels=labels)
    name = hashlib.sha256(config).hexdigest()
    row = {"Config": f"{name}.json", "Layers": [f"{sha256}.tar"], "RepoTags": [tag, tag_of(name)]}
    manifest = json.dumps([row]).encode()
    with tarfile.open(output, "w", format=tarfile.GNU_FORMAT) as tar:
        with layer.open("rb") as file:
            tar.addfile(_member(f"{sha256}.tar", layer.stat().st_size), file)
        for member, data in ((f"{name}.json", config), ("manifest.json", manifest)):
            tar.addfile(_member(member, len(data)), io.BytesIO(data))
    return f"sha256:{name}"


def _member(name: str, size: int) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.size = size
    return member
