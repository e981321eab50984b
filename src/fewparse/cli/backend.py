"""The options that choose where an experiment runs: in this process, or with workers of Ray."""

from dataclasses import dataclass
from typing import Annotated

from fewparse.cli.options import option
from fewparse.errors import UnknownName, UsageError

LOCAL, RAY = BACKENDS = ("local", "ray")
PANEL = "Ray"

On = Annotated[str, option(PANEL, f"Where to run: {' | '.join(BACKENDS)}.")]
Workers = Annotated[
    int | None, option(PANEL, "Number of Ray workers (default: as many as there is room for).", min=1)
]
CpusPerWorker = Annotated[
    int, option(PANEL, "Cores of a Ray worker: the threads of a model in its process.", min=1)
]
GpusPerWorker = Annotated[float, option(PANEL, "GPUs of a Ray worker.", min=0)]
RayAddress = Annotated[
    str | None, option(PANEL, "Address of a Ray cluster (default: $RAY_ADDRESS, or Ray on this machine).")
]


@dataclass(frozen=True)
class RayOptions:
    """The options of a run on Ray."""

    workers: int | None = None
    cpus_per_worker: int = 1
    gpus_per_worker: float = 0
    address: str | None = None


def chosen_backend(
    on: str, workers: int | None, cpus_per_worker: int, gpus_per_worker: float, address: str | None
) -> RayOptions | None:
    """Return the options of a run on Ray; None for a run in this process."""
    if on not in BACKENDS:
        raise UnknownName("backend", on, BACKENDS)
    if on == RAY:
        return RayOptions(workers, cpus_per_worker, gpus_per_worker, address)
    if workers is not None or address is not None:
        raise UsageError("--workers and --ray-address are for a run on Ray", "Add --on ray.")
    return None
