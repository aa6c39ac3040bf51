"""What the recipes beside share: getting pinned sources, from a local mirror or from upstream, never unchecked; ccache.

A recipe says `python_requires = "tilestack_sources/1.0"`. Settings, given with `-c`:
`user.tilestack:source_mirror`  a folder of archives and git clones, looked into before any network is
`user.tilestack:debian_mirror`  the address of a Debian mirror, for archives that Debian keeps as well
`user.tilestack:ccache`         False compiles without ccache where there is one
"""

import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from conan import ConanFile
from conan.errors import ConanException
from conan.tools.env import Environment
from conan.tools.files import get, unzip

required_conan_version = ">=2.20"

MIRROR = "user.tilestack:source_mirror"
DEBIAN = "user.tilestack:debian_mirror"


class Sources(ConanFile):
    name = "tilestack_sources"
    version = "1.0"
    package_type = "python-require"
    license = "Apache-2.0"


def use_ccache(recipe, toolchain):
    """Have a CMakeToolchain compile through ccache, if there is one and nobody forbade it."""
    ccache = shutil.which("ccache")
    if not ccache or not recipe.conf.get("user.tilestack:ccache", True, check_type=bool):
        return
    toolchain.cache_variables["CMAKE_C_COMPILER_LAUNCHER"] = ccache
    toolchain.cache_variables["CMAKE_CXX_COMPILER_LAUNCHER"] = ccache
    # Conan puts every build into a folder of its own name: without these the cache would never hit again.
    settings = Environment()
    settings.define("CCACHE_BASEDIR", str(Path(recipe.build_folder).parent))
    settings.define("CCACHE_NOHASHDIR", "1")
    settings.vars(recipe, scope="build").save_script("ccache")


def _mirror(recipe):
    folder = recipe.conf.get(MIRROR, check_type=str)
    if folder and not Path(folder).is_dir():
        raise ConanException(f"--source-mirror {folder}: no such folder")
    return Path(folder) if folder else None


def _give_up(recipe, what, tried, put):
    lines = "".join(f"\n  {place}: {why}" for place, why in tried)
    raise ConanException(
        f"{recipe.name}/{recipe.version}: {what} could not be had. Tried{lines}\n"
        f"next: put {put} into a folder and give it: nox -s build_toolchain -- --native --source-mirror DIR"
    )


def _why_not(path, absent):
    """Why there is nothing at `path`: `absent`, or where the link there leads, as a container may not see that."""
    dangling = path.is_symlink() and not path.exists()
    return f"a symbolic link to {path.readlink()}, which is not there" if dangling else absent


def _sha256(path):
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def get_archive(recipe, archives):
    """Unpack the first of `archives` that can be had into the current folder, less its top folder.

    An archive is `{url, sha256}`, or `{debian, sha256}` with a path on a Debian mirror. One that is there but is not
    the pinned one is an error, not a reason to try the next. Raises ConanException naming each place tried.
    """
    mirror, debian = _mirror(recipe), recipe.conf.get(DEBIAN, check_type=str)
    tried = []
    for archive in archives:
        name = (archive.get("url") or archive["debian"]).rsplit("/", 1)[-1]
        local = mirror / name if mirror else None
        if local and local.is_file():
            if (found := _sha256(local)) != archive["sha256"]:
                raise ConanException(f"{local}: sha256 {found}, pinned is {archive['sha256']}: not what we build")
            unzip(recipe, str(local), strip_root=True)
            return
        if local:
            tried.append((local, _why_not(local, "no such file")))
    for archive in archives:
        url = archive.get("url") or (debian and f"{debian.rstrip('/')}/{archive['debian']}")
        if not url:
            tried.append((archive["debian"], "no Debian mirror given"))
            continue
        try:
            get(recipe, url, sha256=archive["sha256"], strip_root=True, retry=1)
        except ConanException as error:
            if "signature" in str(error):  # Conan's word for a hash that differs
                raise
            tried.append((url, str(error).strip().splitlines()[-1]))
        else:
            return
    names = " or ".join((archive.get("url") or archive["debian"]).rsplit("/", 1)[-1] for archive in archives)
    _give_up(recipe, "the source archive", tried, names)


def get_git(recipe, url, mirrors, commit, tree, name):
    """Check `commit` of a git repository out into the current folder, and that its tree's hash is `tree` (None: the
    commit's own hash, in full, is all that is known of it, and pins its files as well).

    Looked for as `name` or `name.git` (clones) or `name-<commit>.tar.*` (an archive of the tree) in the local mirror,
    then at `url` and `mirrors`. Raises ConanException naming each place tried, or if the tree is another.
    """
    mirror, tried = _mirror(recipe), []
    places = [str(mirror / name), str(mirror / f"{name}.git")] if mirror else []
    for archive in sorted(mirror.glob(f"{name}-{commit}.tar*")) if mirror and tree else ():
        unzip(recipe, str(archive), strip_root=True)
        _check_tree(str(archive), _tree_of_files(), tree)
        return
    _git("init", "-q", ".")
    for place in (*places, url, *mirrors):
        if place in places and not Path(place).is_dir():
            tried.append((place, _why_not(Path(place), "no such clone")))
            continue
        try:
            _git("fetch", "-q", "--depth", "1", place, commit)
        except subprocess.CalledProcessError as error:
            tried.append((place, error.stderr.strip().splitlines()[-1] if error.stderr.strip() else "git failed"))
            continue
        _check_tree(place, _git("rev-parse", f"{commit}^{{tree}}"), tree)
        _git("-c", "advice.detachedHead=false", "checkout", "-q", commit)
        return
    _give_up(recipe, f"commit {commit}", tried, f"a clone named {name}, or {name}-{commit}.tar.gz,")


def _check_tree(place, found, pinned):
    if pinned is not None and found != pinned:
        raise ConanException(f"{place}: git tree {found}, pinned is {pinned}: not what we build")


def _tree_of_files():
    """The hash that git gives the tree of the files here, whatever a .gitignore among them says."""
    with tempfile.TemporaryDirectory() as folder:
        elsewhere = ("--git-dir", folder, "--work-tree", ".")
        _git(*elsewhere, "init", "-q")
        _git(*elsewhere, "-c", "core.autocrlf=false", "-c", "core.fileMode=true", "add", "-f", "-A", ".")
        return _git(*elsewhere, "write-tree")


def _git(*args):
    # No settings of the user's: they may rewrite addresses or contents. A clone of another owner is no danger here,
    # as nothing of it runs and its tree's hash is checked.
    settings = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    command = ["git", "-c", "safe.directory=*", "-c", "protocol.file.allow=always", *args]
    return subprocess.run(command, check=True, capture_output=True, text=True, env=settings).stdout.strip()
