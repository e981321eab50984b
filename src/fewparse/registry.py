"""Tables of implementations by name: bundled ones, and those that installed packages add by entry points."""

import importlib
import warnings
from collections.abc import Iterator, Mapping
from functools import cached_property
from importlib.metadata import EntryPoint, entry_points
from typing import Generic, TypeVar

from fewparse.errors import UnknownName

T = TypeVar("T")
TAKEN = "its name is already taken"


class Registry(Generic[T]):
    """The implementations of one kind by name.

    `bundled` maps a name to "module:attribute", which is imported on first use. Packages add names under the
    entry-point group `group`; they are imported when a name that is not bundled is looked up. One that cannot be
    imported, or that takes a bundled name, is skipped with a warning.
    """

    def __init__(self, kind: str, bundled: Mapping[str, str], group: str | None = None) -> None:
        self.kind = kind
        self.bundled = dict(bundled)
        self._group = group
        self._loaded: dict[str, T] = {}

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __contains__(self, name: object) -> bool:
        return name in self.bundled or name in self.added  # a bundled name imports no other package

    @property
    def names(self) -> tuple[str, ...]:
        """All names, the bundled ones first."""
        return (*self.bundled, *self.added)

    @property
    def choices(self) -> tuple[str, ...]:
        """The names for a help text; those of entry points are listed without importing them."""
        return (*self.bundled, *(point.name for point in self._entry_points if point.name not in self.bundled))

    def check(self, name: str) -> str:
        """Return a known name; raise `UnknownName` with suggestions for any other."""
        if name not in self:
            raise UnknownName(self.kind, name, self.names)
        return name

    def __getitem__(self, name: str) -> T:
        """Return the implementation of a name, imported on first use."""
        if name not in self._loaded:
            self._loaded[name] = self._load(self.check(name))
        return self._loaded[name]

    def _load(self, name: str) -> T:
        if name not in self.bundled:
            return self.added[name]
        for point in self._entry_points:
            if point.name == name:
                warn(self.kind, point, TAKEN)
        module, _, attribute = self.bundled[name].partition(":")
        return getattr(importlib.import_module(module), attribute)  # type: ignore[no-any-return]

    @cached_property
    def _entry_points(self) -> tuple[EntryPoint, ...]:
        return tuple(entry_points(group=self._group)) if self._group else ()

    @cached_property
    def added(self) -> dict[str, T]:
        """The implementations that installed packages add."""
        found: dict[str, T] = {}
        for point in self._entry_points:
            if point.name in self.bundled or point.name in found:
                warn(self.kind, point, TAKEN)
                continue
            try:
                found[point.name] = point.load()
            except Exception as error:  # third-party code may raise anything; the other packages still work
                warn(self.kind, point, f"it cannot be imported ({error!r})")
        return found


def warn(kind: str, point: EntryPoint, reason: str) -> None:
    """Warn that an entry point is skipped."""
    package = point.dist.name if point.dist else "an unknown package"
    warnings.warn(f"the {kind} `{point.name}` of {package} is skipped: {reason}", stacklevel=2)
