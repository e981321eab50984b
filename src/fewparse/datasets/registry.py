"""The table of datasets. To add one, write its package and add one line here."""

from typing import TYPE_CHECKING

from fewparse.registry import Registry

if TYPE_CHECKING:
    from fewparse.datasets.dataset import Dataset

DATASETS: "Registry[Dataset]" = Registry(
    "dataset",
    {
        "function-calls": "fewparse.datasets.function_calls.dataset:FUNCTION_CALLS",
        "geoquery": "fewparse.datasets.geoquery.dataset:GEOQUERY",
        "overnight": "fewparse.datasets.overnight.dataset:OVERNIGHT",
        "smcalflow": "fewparse.datasets.smcalflow.dataset:SMCALFLOW",
    },
)


def benchmark_domains() -> list[str]:
    """Return the names of the domains of all datasets."""
    return [domain for name in DATASETS for domain in DATASETS[name].domains]


def dataset_of(domain: str) -> "Dataset | None":
    """Return the dataset that a domain belongs to, or None if no dataset has a domain of that name."""
    name = domain.partition("/")[0]
    return DATASETS[name] if name in DATASETS and domain in DATASETS[name].domains else None
