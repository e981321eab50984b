"""Which package imports which, read from the source."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import fewparse
from fewparse import errors

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


@pytest.mark.parametrize(
    ("package", "others"),
    [
        ("lm", {"grammar", "constrain", "search", "domains", "retrieve", "parser", "tune", "cli"}),
        ("grammar", {"lm", "constrain", "search", "domains", "retrieve", "prompt", "parser", "cli"}),
        ("constrain", {"lm", "search", "domains", "retrieve", "prompt", "parser", "cli"}),
        ("search", {"grammar", "domains", "retrieve", "parser", "tune", "cli"}),
        ("retrieve", {"constrain", "search", "domains", "parser", "cli"}),
        ("domains", {"parser", "evaluate", "tune", "cli"}),
        ("datasets", {"lm", "constrain", "search", "domains", "retrieve", "parser", "evaluate", "cli"}),
        ("evaluate", {"constrain", "grammar", "datasets", "cli", "tune"}),
        ("tune", {"search", "grammar", "datasets", "cli"}),
    ],
)
def test_a_package_does_not_import_these(package: str, others: set[str]) -> None:
    inside = [file for file in FILES if file.relative_to(ROOT).parts[0] == package]
    assert inside
    known = {(module_name(file), name) for file in inside for name in imports(file)}
    assert not {(importer, imported) for importer, imported in known if imported.split(".")[1] in others}


def test_search_sees_models_and_constraints_only_as_protocols() -> None:
    seen = {name for file in FILES if file.parent.name == "search" for name in imports(file)}
    assert {n for n in seen if n.startswith("fewparse.lm.")} <= {"fewparse.lm.model", "fewparse.lm.usage"}
    assert {n for n in seen if n.startswith("fewparse.constrain.")} <= {"fewparse.constrain.state"}


def test_there_are_no_import_cycles() -> None:
    graph = {name: imports(file, only_at_import_time=True) - {name} for name, file in MODULES.items()}
    assert graph["fewparse.parser"]
    TopologicalSorter(graph).prepare()  # raises CycleError


def test_only_the_command_line_imports_the_command_line() -> None:
    outside = {name: imports(file) for name, file in MODULES.items() if not name.startswith("fewparse.cli")}
    assert not {name for name, known in outside.items() if any(k.startswith("fewparse.cli") for k in known)}


PUBLIC_NAMES = """
    BudgetLimits Candidate CfgConstraint Completion Constraint Domain Event Example Grammar Judge LanguageModel
    NextTokens Options Parse Parser ParserOptions Pool Prompt Proportion Record Records RemoteSettings Reranker
    Retriever RetryPolicy Sampling ScoredToken SearchSettings State SynchronousGrammar SystemResult Target Template
    Token Translation Translator Trie TuneConfig Unconstrained Usage Vocabulary known_domains load_domain
    load_grammar load_split open_model parser_systems run_evaluation
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
