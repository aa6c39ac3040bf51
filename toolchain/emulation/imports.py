"""Calls a function once a module has been imported, whenever that is."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

Hook = Callable[[ModuleType], object]


def when_imported(name: str, hook: Hook) -> None:
    """Calls `hook(module)` right after the module's own code has run, or at once if it has run already. What the hook
    raises, the import raises."""
    if name in sys.modules:
        hook(sys.modules[name])
        return
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)
    _finder.hooks[name] = hook


class _Finder(MetaPathFinder):
    """Finds the modules that somebody waits for as the other finders do, with a loader that calls the hook."""

    def __init__(self) -> None:
        self.hooks: dict[str, Hook] = {}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        hook = self.hooks.get(fullname)
        if hook is None:
            return None
        for finder in sys.meta_path:
            spec = None if finder is self else finder.find_spec(fullname, path, target)
            if spec is not None:
                if spec.loader is not None:
                    spec.loader = _Loader(spec.loader, hook)
                return spec
        return None


class _Loader(Loader):
    """A loader that has something done after it. Whatever else is asked of it, the first loader answers."""

    def __init__(self, loader: Loader, hook: Hook) -> None:
        self._loader, self._hook = loader, hook

    def __getattr__(self, name: str) -> object:
        return getattr(self._loader, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        _finder.hooks.pop(module.__name__, None)
        self._hook(module)


_finder = _Finder()
