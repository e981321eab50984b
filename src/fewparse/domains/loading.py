"""Find a domain by its name or its folder, and load it."""

import os
from dataclasses import replace
from importlib import resources
from pathlib import Path

from fewparse.data.folder import data_folder
from fewparse.domains.domain import Domain
from fewparse.domains.examples import EXAMPLES, PAIR, read_examples
from fewparse.domains.overnight.world import WORLDS
from fewparse.domains.schema import ConstraintKind, read_domain_table
from fewparse.errors import DataUnavailable, DomainError, UnknownName, UsageError

SETTINGS = "domain.toml"


def bundled_domains() -> dict[str, Path]:
    """The domains that come with fewparse whole, by name."""
    return {folder.name: folder for folder in sorted(package().iterdir()) if (folder / EXAMPLES).exists()}


def known_domains() -> list[str]:
    """All names that `load_domain` understands; the examples of a benchmark have to be fetched or imported."""
    return [*bundled_domains(), *(f"overnight/{world}" for world in WORLDS)]


def package() -> Path:
    """The folder of the bundled domains."""
    return Path(str(resources.files("fewparse.domains")))


def find_domain(place: str | Path, data: Path | None = None) -> Domain:
    """A domain without its examples, which is enough to execute programs."""
    name = str(place)
    benchmark, _, member = name.partition("/")
    if benchmark == "overnight" and member in WORLDS:
        folder = package() / benchmark
        changes = {"name": name, "executor": f"fewparse.domains.overnight.execute:{member}"}
        table = read_domain_table(folder / SETTINGS).model_copy(update=changes)
        return Domain(folder, table, (), data_folder(data) / benchmark / member)
    folder = bundled_domains().get(name) or Path(os.path.expanduser(place))
    if not folder.is_dir():
        raise UnknownName("domain", name, known_domains(), "Or give the path of a domain folder.")
    if not (folder / SETTINGS).exists():
        raise DomainError(
            "the folder has no domain.toml", folder, hint="`fewparse new NAME` makes a domain folder."
        )
    return Domain(folder, read_domain_table(folder / SETTINGS), (), folder)


def load_domain(
    place: str | Path,
    data: Path | None = None,
    pool: int | None = None,
    constraint: ConstraintKind | None = None,
) -> Domain:
    """A domain by the name of one that comes with fewparse, or by the path of its folder.

    `data` is where fetched examples lie; `pool` (how many of the examples are taught, from the first) and
    `constraint` take the place of the domain's own settings.
    """
    domain = find_domain(place, data)
    table = domain.table
    if constraint is not None:
        table = table.model_copy(update={"constraint": table.constraint.model_copy(update={"kind": constraint})})
    path = domain.data / EXAMPLES
    if domain.data != domain.folder and not path.exists():
        benchmark = domain.name.partition("/")[0]
        raise DataUnavailable(
            f"the examples of {domain.name} are not in {domain.data}",
            f"Fetch them: fewparse data get {benchmark}. Or import them: fewparse data import {benchmark} FOLDER",
        )
    spoken = table.target == "canonical" and not table.constraint.synchronous
    examples = read_examples(path, (*PAIR, "canonical") if spoken else PAIR)
    if not examples:
        raise DomainError("there are no examples", path)
    if pool is not None and not 1 <= pool <= len(examples):
        raise UsageError(f"a pool of {pool} out of {len(examples)} examples", "Take at least one, at most all.")
    return replace(domain, table=table, examples=examples[: pool or table.pool])
