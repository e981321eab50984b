"""Imports between packages, public names and sizes of modules, read from the source."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import fewparse
from fewparse import errors
from test_documents import rows, section

ROOT = Path(fewparse.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))
MAX_MODULE_LINES = 350


def module_name(file: Path) -> str:
    parts = ("fewparse", *file.relative_to(ROOT).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(file): file for file in FILES}


def imports(file: Path, only_at_import_time: bool = False) -> set[str]:
    """Return the modules of this package that a file imports."""
    found: set[str] = set()
    tree = ast.parse(file.read_text(encoding="utf-8"))
    for node in at_import_time(tree) if only_at_import_time else ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            assert node.level == 0, f"{file}: imports are absolute"
            submodules = {f"{node.module}.{alias.name}" for alias in node.names} & set(MODULES)
            found |= submodules or {node.module}
    return found & set(MODULES)


def at_import_time(node: ast.AST) -> Iterator[ast.AST]:
    """Yield everything but the bodies of functions and what only type checkers import."""
    for child in ast.iter_child_nodes(node):
        typing_only = isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING"
        if not typing_only and not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield child
            yield from at_import_time(child)


def import_table() -> dict[str, set[str]]:
    """Return the table "Who may import whom": packages or modules by importing package."""
    text = section(Path(__file__).parents[1] / "docs" / "architecture.md", "## Who may import whom")
    return {package: targets for packages, targets in rows(text) for package in sorted(packages)}


def imported_names(package: str, allowed: set[str]) -> set[str]:
    """Return what a package imports from others: the entry of the table that covers it, or the module itself."""
    names = {
        name.removeprefix("fewparse.")
        for importer, file in MODULES.items()
        if importer == f"fewparse.{package}" or importer.startswith(f"fewparse.{package}.")
        for name in imports(file)
    }
    others = {name for name in names if name.split(".")[0] not in (package, "errors")}
    return {next((entry for entry in allowed if f"{name}.".startswith(f"{entry}.")), name) for name in others}


@pytest.mark.parametrize("package", [package for package in import_table() if package != "cli"])
def test_a_package_imports_what_the_table_says(package: str) -> None:
    table = import_table()
    assert imported_names(package, table[package]) == table[package]


def test_the_table_has_all_packages_each_importing_from_rows_above_only() -> None:
    table = import_table()
    assert {*table, "errors"} == {name.split(".")[1] for name in MODULES if name != "fewparse"}
    assert list(table)[-2:] == ["cli", "__main__"]
    for i, targets in enumerate(table.values()):
        assert {target.split(".")[0] for target in targets} <= set(list(table)[:i])


def test_there_are_no_import_cycles() -> None:
    graph = {name: imports(file, only_at_import_time=True) - {name} for name, file in MODULES.items()}
    assert graph["fewparse.parser"]
    TopologicalSorter(graph).prepare()  # raises CycleError


PUBLIC_NAMES = """
    BudgetLimits Candidate CfgConstraint Choice Completion Constraint Domain Event Example FeedbackEntry
    FeedbackLog Grammar Judge LanguageModel NextTokens Options Parse Parser ParserOptions Pool Prompt
    Proportion Question Record Records RemoteSettings Reranker Results Retriever RetryPolicy Sampling
    ScoredToken SearchSettings State SynchronousGrammar SystemResult Target Template Token Translation
    Translator Trie TuneConfig Unconstrained Usage Vocabulary known_domains load_domain load_grammar load_split
    open_model parser_systems prepare_similarity read_results run_evaluation
"""


def test_the_public_names_are_these_and_all_errors() -> None:
    assert fewparse.__all__ == sorted(fewparse.__all__)
    assert set(fewparse.__all__) == {*PUBLIC_NAMES.split(), *errors.__all__}
    assert all(getattr(fewparse, name) is not None for name in fewparse.__all__)
    assert {name for name in dir(errors) if isinstance(getattr(errors, name), type)} - {
        "Path",
        "Iterable",
        "Sequence",
    } == set(errors.__all__)


def test_an_unknown_public_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Praser'"):
        _ = fewparse.Praser


def test_the_names_imported_for_type_checkers_are_the_public_names() -> None:
    tree = ast.parse(MODULES["fewparse"].read_text(encoding="utf-8"))
    typed = {alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert typed - {"TYPE_CHECKING", "Any"} == set(fewparse.__all__)


def test_importing_the_package_imports_only_its_errors() -> None:
    script = "import sys, fewparse; print(sorted(m for m in sys.modules if m.startswith('fewparse')))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['fewparse', 'fewparse.errors']"


@pytest.mark.parametrize("name", MODULES)
def test_a_module_is_short_and_has_a_docstring(name: str) -> None:
    source = MODULES[name].read_text(encoding="utf-8")
    assert len(source.splitlines()) <= MAX_MODULE_LINES
    assert ast.get_docstring(ast.parse(source))
