"""The datasets that fewparse knows, by name."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from fewparse.datasets.download import Progress
from fewparse.datasets.folder import Kept, Outcome
from fewparse.datasets.overnight import dataset as overnight
from fewparse.datasets.smcalflow import dataset as smcalflow
from fewparse.errors import UnknownName


class Get(Protocol):
    """Fetches a dataset into the data folder."""

    def __call__(
        self, folder: Path, progress: Progress | None = None, base_url: str | None = None, force: bool = False
    ) -> Outcome:
        """The address is that of a mirror; forced, everything is fetched again."""


@dataclass(frozen=True)
class Dataset:
    """What can be done with a dataset: fetch it, import it from a folder, see what is kept."""

    get: Get
    import_from: Callable[[Path, Path], Outcome]
    kept: Callable[[Path], tuple[Kept, ...]]


DATASETS = {
    overnight.NAME: Dataset(overnight.get, overnight.import_from, overnight.kept),
    smcalflow.NAME: Dataset(smcalflow.get, smcalflow.import_from, smcalflow.kept),
}


def dataset(name: str) -> Dataset:
    """The dataset of a name."""
    if name not in DATASETS:
        raise UnknownName("dataset", name, DATASETS)
    return DATASETS[name]
