"""Find a domain by its name or its folder, and load it."""

import difflib
import os
import warnings
from dataclasses import replace
from functools import cache
from importlib import resources
from pathlib import Path
from types import ModuleType
from typing import TypedDict

from pydantic import ValidationError

from fewparse.arguments import accepted_types, check_type, check_values
from fewparse.datasets.registry import benchmark_domains, dataset_of
from fewparse.datasets.storage import check_stored, complete_replacement, data_folder
from fewparse.domains.constraints import CONSTRAINT_KINDS
from fewparse.domains.domain import Domain
from fewparse.domains.examples import EXAMPLES, PAIR
from fewparse.domains.schema import ConstraintTable, read_domain_table
from fewparse.errors import DataUnavailable, DomainError, InvalidProgram, UnknownName, UsageError, shortened
from fewparse.files import exists, path_inside, user_path
from fewparse.registry import Registry

SETTINGS = "domain.toml"


class LoadingOptions(TypedDict, total=False):
    """Options of `load_domain`, besides the kind of the constraint."""

    data: Path | None
    pool: int | None
    grammar: Path | None
    copy: bool | None
    isolate_grammar: bool | None
    allow_code: bool | None
    paper: bool | None


LOADING_TYPES = accepted_types(LoadingOptions) | {"constraint": (str,)}


def bundled_domains() -> dict[str, Path]:
    """Return the folders of the domains bundled with fewparse, by name."""
    return {folder.name: folder for folder in sorted(package().iterdir()) if (folder / EXAMPLES).exists()}


def known_domains() -> list[str]:
    """Return all names that `load_domain` accepts."""
    return [*bundled_domains(), *benchmark_domains(), *installed_domains()]


@cache
def installed_domains() -> dict[str, Path]:
    """Return the folders of domains that installed packages add by the entry point group `fewparse.domains`.

    An entry point names a package whose folder is a domain folder.
    """
    reserved = dict.fromkeys([*bundled_domains(), *benchmark_domains()], "")
    folders = {}
    for name, module in Registry[object]("domain", reserved, group="fewparse.domains").added.items():
        file = module.__file__ if isinstance(module, ModuleType) else None
        if file is None:
            warnings.warn(f"the domain `{name}` is skipped: its entry point is not a package", stacklevel=2)
        else:
            folders[name] = Path(file).parent
    return folders


def package() -> Path:
    """Return the folder of the bundled domains."""
    return Path(str(resources.files("fewparse.domains")))


def find_domain(name_or_path: str | Path, data: Path | None = None, allow_code: bool = True) -> Domain:
    """Return a domain without its examples: enough to execute programs and to inspect the grammar."""
    name = str(name_or_path)
    if dataset := dataset_of(name):
        table = read_domain_table(dataset.folder / SETTINGS).model_copy(update=dataset.settings(name))
        examples = data_folder(data) / name
        return Domain(table=table, settings_folder=dataset.folder, examples_folder=examples, installed=True)
    part_of_package = bundled_domains().get(name) or installed_domains().get(name)
    folder = part_of_package or user_path(name_or_path)
    if not os.path.isdir(folder):
        raise unknown_domain(name, folder)
    if not exists(folder / SETTINGS):
        raise DomainError(
            "the folder has no domain.toml", folder, hint="`fewparse new NAME` creates a domain folder."
        )
    installed = part_of_package is not None or folder.absolute() in bundled_domains().values()
    table = read_domain_table(path_inside(folder, SETTINGS))
    return Domain(
        table=table,
        settings_folder=folder,
        examples_folder=folder,
        allow_code=allow_code or installed,
        installed=installed,
    )


def unknown_domain(name: str, path: Path) -> UsageError:
    """Return the error for a domain that does not exist, with the most similar names or domain folders.

    A name that starts like a path can only be a folder; any other can also be the name of a domain.
    """
    if os.path.exists(path):
        return UsageError(f"{name} is not a folder", "Give the folder that contains its domain.toml.")
    is_path = name.startswith((".", "~")) or path.is_absolute()
    written = name.rstrip(f"/{os.sep}")
    parent = written.removesuffix(path.name) or f".{os.sep}"
    folders = [f"{parent}{folder}" for folder in domain_folders(path.parent)]
    if not is_path:
        return UnknownName("domain", name, [*known_domains(), *folders], "Or give the path of a domain folder.")
    near = difflib.get_close_matches(written, folders, n=3, cutoff=0.5)
    hint = f"Did you mean {' or '.join(near)}?" if near else "`fewparse new NAME` creates a domain folder."
    return UsageError(f"there is no folder {shortened(name)}", hint)


def domain_folders(parent: Path) -> list[str]:
    """Return the names of the domain folders in a folder; none if it cannot be read."""
    try:
        return sorted(entry.name for entry in os.scandir(parent) if exists(parent / entry.name / SETTINGS))
    except (OSError, ValueError):
        return []


def load_domain(
    name_or_path: str | Path,
    data: Path | None = None,
    pool: int | None = None,
    constraint: str | None = None,
    grammar: Path | None = None,
    copy: bool | None = None,
    isolate_grammar: bool = False,
    allow_code: bool = True,
    paper: bool | None = None,
) -> Domain:
    """Load a domain by its name, or by the path of its folder.

    `data` is the folder of downloaded datasets. The others override settings of the domain: `pool` (how many of
    the training examples to use), `constraint` (its kind), `grammar` (a file or folder), and `copy` (whether free
    text must be copied from the utterance). `isolate_grammar` is for grammars that are not trusted: see `Domain`.
    With `allow_code` false, no code of the folder runs: programs are not executed, unless the domain is part of an
    installed package. `paper` switches paper mode on (the paper's settings replace the domain's, and no text is
    copied unless `copy` is true) or off.
    """
    check_type("the domain", name_or_path, (str, Path), "the name of a domain, or the path of its folder")
    given = {
        "data": data,
        "pool": pool,
        "constraint": constraint,
        "grammar": grammar,
        "copy": copy,
        "paper": paper,
    }
    check_values(given | {"isolate_grammar": isolate_grammar, "allow_code": allow_code}, LOADING_TYPES)
    copy = False if paper and copy is None else copy
    domain = with_overrides(find_domain(name_or_path, data, allow_code), constraint, grammar, copy)
    domain = replace(domain, isolate_grammar=isolate_grammar, paper=paper)
    table = domain.table
    path = domain.data_file(EXAMPLES)
    if domain.data != domain.folder:
        check_benchmark(domain, data_folder(data))
    needs_canonical = table.target == "canonical" and not domain.constraint_kind.synchronous
    examples = domain.read_examples(EXAMPLES, (*PAIR, "canonical") if needs_canonical else PAIR)
    if not examples and domain.constraint_kind.needs_examples:
        raise DomainError(f"there are no examples, and the constraint `{table.constraint.kind}` needs some", path)
    if pool is not None and not 1 <= pool <= len(examples):
        raise UsageError(f"the pool is {pool} of {len(examples)} examples", "Use at least one, at most all.")
    chosen = tuple(map(domain.without_foreign_canonical, examples[: pool or table.pool]))
    usable = tuple(example for example in chosen if is_canonical(example.program, domain))
    return domain.with_examples(usable, len(chosen) - len(usable))


def is_canonical(program: str, domain: Domain) -> bool:
    """Return whether a program is as the constraint writes it; one of a benchmark may not be."""
    try:
        return domain.data == domain.folder or domain.constraint_kind.canonical_program(program) == program
    except InvalidProgram:
        return False


def check_benchmark(domain: Domain, data: Path) -> None:
    """Raise `DataUnavailable` if the files of a benchmark domain are missing or damaged."""
    benchmark = domain.name.partition("/")[0]
    complete_replacement(data / benchmark)
    check_stored(domain.name, domain.data)
    if not exists(domain.data / EXAMPLES):
        raise DataUnavailable(
            f"the examples of {domain.name} are not in {domain.data}",
            f"Download them: fewparse data get {benchmark}. Or import them: fewparse data import {benchmark} DIR",
        )


def with_kind(settings: ConstraintTable, kind: str, name: str) -> ConstraintTable:
    """Return the settings of a constraint with another kind; raise `UsageError` if that needs further settings."""
    table = CONSTRAINT_KINDS[kind].table or ConstraintTable
    if isinstance(settings, table):
        return settings.model_copy(update={"kind": kind})
    shared = settings.model_dump(by_alias=True, include=set(ConstraintTable.model_fields))
    if not CONSTRAINT_KINDS[kind].can_copy:
        del shared["copy"]
    try:
        return table.model_validate(shared | {"kind": kind})
    except ValidationError as error:
        missing = ", ".join(f"`{problem['loc'][0]}`" for problem in error.errors())
        raise UsageError(
            f"the constraint `{kind}` needs settings that the domain {name} does not have: {missing}",
            "Set them in domain.toml under [constraint].",
        ) from None


def with_overrides(domain: Domain, constraint: str | None, grammar: Path | None, copy: bool | None) -> Domain:
    """Return the domain with another constraint; options that contradict each other are a `UsageError`."""
    table, chosen = domain.table, domain.table.constraint
    if grammar is not None:
        if constraint not in (None, "grammar"):
            raise UsageError(
                f"a grammar is given, but the constraint is `{constraint}`",
                "Omit one of them: --grammar or --constraint.",
            )
        path = str(user_path(grammar).absolute())
        chosen = chosen.model_copy(update={"grammar": path, "dialect": None, "start": "start"})
        constraint = "grammar"
    if constraint is not None:
        chosen = with_kind(chosen, CONSTRAINT_KINDS.check(constraint), domain.name)
    can_copy = CONSTRAINT_KINDS[chosen.kind].can_copy
    if copy and not (chosen.copy_rules and can_copy):
        raise UsageError(
            f"the domain {domain.name} names no rules whose text could be copied"
            if can_copy
            else f"the constraint `{chosen.kind}` has no rules whose text could be copied",
            'Omit --copy, or name rules in domain.toml: copy = ["RULE"] under [constraint] with a grammar.',
        )
    if copy is False:
        chosen = chosen.model_copy(update={"copy_rules": ()})
    changed = replace(domain, table=table.model_copy(update={"constraint": chosen}), own_grammar=grammar is None)
    was_synchronous = grammar is not None or domain.constraint_kind.synchronous
    if was_synchronous and not changed.constraint_kind.synchronous:  # without canonical utterances
        changed = replace(changed, table=changed.table.model_copy(update={"target": "program"}))
    return changed
