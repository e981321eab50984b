"""Find a domain by its name or its folder, and load it."""

import os
from dataclasses import replace
from importlib import resources
from pathlib import Path

from fewparse.datasets.registry import benchmark_domains, dataset_of
from fewparse.datasets.storage import data_folder
from fewparse.domains.domain import Domain
from fewparse.domains.examples import EXAMPLES, PAIR, read_examples
from fewparse.domains.schema import GRAMMATICAL, ConstraintKind, read_domain_table
from fewparse.errors import DataUnavailable, DomainError, UnknownName, UsageError

SETTINGS = "domain.toml"


def bundled_domains() -> dict[str, Path]:
    """The domains that come with fewparse whole, by name."""
    return {folder.name: folder for folder in sorted(package().iterdir()) if (folder / EXAMPLES).exists()}


def known_domains() -> list[str]:
    """Return all names that `load_domain` accepts: bundled domains, and domains of datasets."""
    return [*bundled_domains(), *benchmark_domains()]


def package() -> Path:
    """The folder of the bundled domains."""
    return Path(str(resources.files("fewparse.domains")))


def find_domain(place: str | Path, data: Path | None = None) -> Domain:
    """A domain without its examples, which is enough to execute programs and to look at a grammar."""
    name = str(place)
    if dataset := dataset_of(name):
        table = read_domain_table(dataset.folder / SETTINGS).model_copy(update=dataset.settings(name))
        return Domain(dataset.folder, table, (), data_folder(data) / name)
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
    grammar: Path | None = None,
    copy: bool | None = None,
) -> Domain:
    """A domain by the name of one that comes with fewparse, or by the path of its folder.

    `data` is where fetched examples lie. The others take the place of the domain's own settings: `pool` (how many
    of the examples are taught, from the first), `constraint`, `grammar` (a file or a folder), and `copy` (whether
    free text must be copied from the utterance).
    """
    domain = with_choices(find_domain(place, data), constraint, grammar, copy)
    table = domain.table
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
    return replace(domain, examples=tuple(map(domain.as_spoken, examples[: pool or table.pool])))


def with_choices(
    domain: Domain, constraint: ConstraintKind | None, grammar: Path | None, copy: bool | None
) -> Domain:
    """The domain under another constraint than its own; choices that contradict each other are refused."""
    table, chosen = domain.table, domain.table.constraint
    if grammar is not None:
        if constraint not in (None, "grammar"):
            raise UsageError(
                f"a grammar is given, and the constraint is `{constraint}`",
                "Leave one of them out: --grammar or --constraint.",
            )
        place = str(grammar.expanduser().absolute())
        chosen = chosen.model_copy(update={"grammar": place, "dialect": None, "start": "start"})
        constraint = "grammar"
    if constraint is not None:
        chosen = chosen.model_copy(update={"kind": constraint})
    if copy and not (chosen.copy_rules and chosen.kind in GRAMMATICAL):
        raise UsageError(
            f"the domain {domain.name} names no rules whose text could be copied"
            if chosen.kind in GRAMMATICAL
            else f"the constraint `{chosen.kind}` cannot tell what is copied",
            'Leave --copy out, or name some in a domain.toml: copy = ["RULE"] under [constraint] with a grammar.',
        )
    if copy is False:
        chosen = chosen.model_copy(update={"copy_rules": ()})
    lost = (grammar is not None or table.constraint.synchronous) and not chosen.synchronous
    target = "program" if lost else table.target
    return replace(
        domain,
        table=table.model_copy(update={"constraint": chosen, "target": target}),
        own_grammar=grammar is None,
    )
