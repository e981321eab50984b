"""Who knows whom, read from the source itself."""

import ast
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import fewparse

ROOT = Path(fewparse.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))
LONGEST_MODULE = 400


def module_name(file: Path) -> str:
    parts = ("fewparse", *file.relative_to(ROOT).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(file): file for file in FILES}


def imports(file: Path, only_at_import_time: bool = False) -> set[str]:
    """The modules of this package that a file imports."""
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
    """Everything but the bodies of functions."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield child
            yield from at_import_time(child)


@pytest.mark.parametrize(
    ("room", "strangers"),
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
def test_a_room_does_not_know_these(room: str, strangers: set[str]) -> None:
    inside = [file for file in FILES if file.relative_to(ROOT).parts[0] == room]
    assert inside
    known = {(module_name(file), name) for file in inside for name in imports(file)}
    assert not {(who, whom) for who, whom in known if whom.split(".")[1] in strangers}


def test_search_sees_models_and_constraints_only_as_protocols() -> None:
    seen = {name for file in FILES if file.parent.name == "search" for name in imports(file)}
    assert {n for n in seen if n.startswith("fewparse.lm.")} <= {"fewparse.lm.model", "fewparse.lm.usage"}
    assert {n for n in seen if n.startswith("fewparse.constrain.")} <= {"fewparse.constrain.state"}


def test_no_modules_import_each_other_in_a_circle() -> None:
    graph = {name: imports(file, only_at_import_time=True) - {name} for name, file in MODULES.items()}
    assert graph["fewparse.parser"]
    TopologicalSorter(graph).prepare()  # raises CycleError, which names the circle


def test_only_the_command_line_knows_the_command_line() -> None:
    outside = {name: imports(file) for name, file in MODULES.items() if not name.startswith("fewparse.cli")}
    assert not {name for name, known in outside.items() if any(k.startswith("fewparse.cli") for k in known)}


def test_the_public_names_are_these() -> None:
    assert fewparse.__all__ == sorted(fewparse.__all__)
    assert set(fewparse.__all__) == {
        "Candidate",
        "Domain",
        "Example",
        "FewparseError",
        "LanguageModel",
        "Parse",
        "Parser",
        "Usage",
        "load_domain",
        "open_model",
    }
    assert all(hasattr(fewparse, name) for name in fewparse.__all__)


@pytest.mark.parametrize("name", MODULES)
def test_a_module_is_short_and_says_what_it_is(name: str) -> None:
    source = MODULES[name].read_text(encoding="utf-8")
    assert len(source.splitlines()) < LONGEST_MODULE
    assert ast.get_docstring(ast.parse(source))
