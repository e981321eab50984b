"""The files of a domain: two folders, or none if the domain is made in Python."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path

from fewparse.errors import UsageError
from fewparse.example import Target
from fewparse.files import exists, path_inside


@dataclass(frozen=True)
class DomainFiles(ABC):
    """Paths of a domain's files: `settings_folder` is that of domain.toml, `examples_folder` that of the examples.

    Both are the same, except for benchmark datasets, and None for a domain that is made in Python.
    """

    settings_folder: Path | None
    examples_folder: Path | None

    @property
    @abstractmethod
    def name(self) -> str:
        """The name of the domain."""

    @property
    def folder(self) -> Path:
        """The folder of the settings, grammar, prompt templates and executor; `UsageError` if there is none."""
        return self._existing(self.settings_folder)

    @property
    def data(self) -> Path:
        """The folder of the examples, usually the same; `UsageError` if there is none."""
        return self._existing(self.examples_folder)

    def _existing(self, folder: Path | None) -> Path:
        if folder is None:
            raise UsageError(
                f"the domain {self.name} is made in Python and has no folder, which is needed for this",
                "`fewparse new NAME` makes a domain folder.",
            )
        return folder

    @property
    def has_folder(self) -> bool:
        """Whether the domain is a folder."""
        return self.settings_folder is not None

    @property
    def is_benchmark(self) -> bool:
        """Whether the examples are those of a benchmark dataset, apart from the settings."""
        return self.examples_folder != self.settings_folder

    def data_file(self, name: str) -> Path:
        """Return the path of a file next to the examples; raise `DomainError` if it leads out of the folder."""
        return path_inside(self.data, name)

    def find_data_file(self, name: str) -> Path | None:
        """Return the path of a file next to the examples; None if there is none."""
        return path if self.has_folder and exists(path := self.data_file(name)) else None

    def find_file(self, name: str) -> Path | None:
        """Return the path of a file next to the settings; None if there is none."""
        return path if self.has_folder and exists(path := path_inside(self.folder, name)) else None

    def adapter_path(self, target: Target) -> Path:
        """Return the path of the adapter for a target, next to the examples; the file may not exist."""
        return self.data_file(adapter_name(target))


def adapter_name(target: Target) -> str:
    """Return the name of the file of the adapter for a target."""
    return f"adapter-{target}.gguf"
