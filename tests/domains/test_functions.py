"""Where the functions and files of a domain come from: its own folder, or packages that declare functions."""

import importlib.util
import os
import py_compile
from collections.abc import Callable
from pathlib import Path

import pytest

from fewparse import load_domain
from fewparse.domains.domain import Domain
from fewparse.errors import DomainError, ExecutionError, FewparseError, UsageError
from fewparse.evaluate.run import load_split
from support.cli_runner import CommandResult, fewparse_process
from support.domain_files import copy_starter, to_json_lines

Settings = Callable[[str, str], Path]
EXECUTOR = '"executor.py:execute"'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return copy_starter(tmp_path / "home")


@pytest.fixture
def settings(folder: Path) -> Settings:
    """A function that replaces a text in domain.toml and returns the folder."""

    def replace(old: str, new: str) -> Path:
        path = folder / "domain.toml"
        assert path.read_text().count(old) == 1
        path.write_text(path.read_text().replace(old, new))
        return folder

    return replace


def error_of(use: Callable[[], object]) -> FewparseError:
    with pytest.raises(FewparseError) as raised:
        use()
    return raised.value


@pytest.mark.parametrize(
    "name",
    ["os:system", "json:loads", "builtins:eval", "subprocess:getoutput", "fewparse.domains.trust:trust_folder"],
)
@pytest.mark.parametrize("key", ["executor", "normal_form"])
def test_a_module_that_no_package_declares_is_refused(key: str, name: str, settings: Settings) -> None:
    error = error_of(load_domain(settings(f"executor = {EXECUTOR}", f'{key} = "{name}"')).check)
    assert isinstance(error, DomainError)
    assert f"no installed package declares `{name}`" in error.message
    assert "Put the function into a file of the folder" in (error.hint or "")
    assert f"fewparse.{key}s" in (error.hint or "")


@pytest.mark.parametrize(
    "name",
    [
        "/tmp/executor.py:execute",
        "../executor.py:execute",
        "sub/../../executor.py:execute",
        "C:/executor.py:execute",
        "..\\\\executor.py:execute",
        "executor:execute:more",
        "sub/executor:execute",
        ":execute",
        "executor.py:",
        "executor.py:a.b",
        "os.:system",
    ],
)
def test_a_path_out_of_the_folder_or_without_a_function_is_refused(name: str, settings: Settings) -> None:
    folder = settings(EXECUTOR, f'"{name}"')
    assert error_of(lambda: load_domain(folder)).message.startswith(f"{folder / 'domain.toml'}:5: `executor`: ")


def test_a_link_out_of_the_folder_is_refused(folder: Path, tmp_path: Path) -> None:
    (folder / "executor.py").rename(tmp_path / "elsewhere.py")
    (folder / "executor.py").symlink_to(tmp_path / "elsewhere.py")
    assert "leads out of the domain folder" in error_of(load_domain(folder).check).message


def test_a_link_of_a_folder_out_of_the_folder_is_refused(settings: Settings, tmp_path: Path) -> None:
    folder = settings(EXECUTOR, '"code/executor.py:execute"')
    (tmp_path / "elsewhere").mkdir()
    (folder / "executor.py").rename(tmp_path / "elsewhere" / "executor.py")
    (folder / "code").symlink_to(tmp_path / "elsewhere")
    assert "leads out of the domain folder" in error_of(load_domain(folder).check).message


def test_a_file_in_a_subfolder_may_be_used_and_the_domain_folder_may_be_a_link(
    settings: Settings, tmp_path: Path
) -> None:
    folder = settings(EXECUTOR, '"code/run.py:execute"')
    (folder / "code").mkdir()
    (folder / "executor.py").rename(folder / "code" / "run.py")
    (tmp_path / "link").symlink_to(folder)
    assert load_domain(tmp_path / "link").execute("(ask (radio kitchen))") == "on"


@pytest.mark.parametrize("kind", ["folder", "pipe"])
def test_an_executor_that_is_not_a_regular_file_is_an_error(kind: str, folder: Path) -> None:
    (folder / "executor.py").unlink()
    if kind == "folder":
        (folder / "executor.py").mkdir()
    else:
        os.mkfifo(folder / "executor.py")
    assert "not a regular file" in error_of(load_domain(folder).check).message


def test_a_compiled_file_beside_the_source_is_neither_used_nor_written(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.py"
    other.write_text("def execute(program): return 'from the cache'\n")
    source = folder / "executor.py"
    cached = Path(importlib.util.cache_from_source(str(source)))
    py_compile.compile(str(other), str(cached), invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
    assert load_domain(folder).execute("(ask (radio kitchen))") == "on"
    cached.unlink()
    load_domain(folder).execute("(ask (radio kitchen))")
    assert not list(cached.parent.iterdir())


def test_a_copy_of_a_bundled_domain_may_use_its_executor(settings: Settings) -> None:
    domain = load_domain(settings(EXECUTOR, '"fewparse.domains.calendar.executor:execute"'))
    assert domain.execute("(count (meetings (on Friday)))") is not None
    with pytest.raises(ExecutionError):
        domain.execute("(nonsense)")


ENTRY_POINTS = """
[fewparse.executors]
upper = my_executors.text:upper

[fewparse.normal_forms]
lower = my_executors.text : lower
"""


def run_with_package(tmp_path: Path, *arguments: str, stdin: str = "") -> CommandResult:
    """Run a command with an installed package that declares an executor and a normal form."""
    site = tmp_path / "site-packages"
    (site / "my_executors").mkdir(parents=True)
    (site / "my_executors" / "__init__.py").touch()
    functions = "import os\nupper = str.upper\nlower = str.lower\nsecret = os.getcwd\n"
    (site / "my_executors" / "text.py").write_text(functions)
    info = site / "my_executors-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: my-executors\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(ENTRY_POINTS)
    path = os.pathsep.join(filter(None, [str(site), os.environ.get("PYTHONPATH")]))
    return fewparse_process(*arguments, stdin=stdin, env={"PYTHONPATH": path})


def test_a_function_that_an_installed_package_declares_is_used(settings: Settings, tmp_path: Path) -> None:
    folder = settings(EXECUTOR, '"my_executors.text:upper"')
    ended = run_with_package(tmp_path, "execute", str(folder), "--allow-code", stdin="(ask)\n")
    assert ended == CommandResult(0, "(ASK)\n", "")


@pytest.mark.parametrize("name", ["my_executors.text:secret", "my_executors.text:lower"])
def test_another_function_of_that_package_is_refused(name: str, settings: Settings, tmp_path: Path) -> None:
    folder = settings(EXECUTOR, f'"{name}"')
    ended = run_with_package(tmp_path, "execute", str(folder), "--allow-code", stdin="(ask)\n")
    assert (ended.code, ended.out) == (1, "")
    assert f"no installed package declares `{name}`" in ended.err


SECRET = "top-secret-content"
FILES: dict[str, Callable[[Domain], object]] = {
    "examples.jsonl": lambda domain: domain.examples,
    "test.jsonl": lambda domain: domain.test_examples,
    "grammar.lark": lambda domain: domain.check(),
    "home.toml": lambda domain: domain.template("home"),
    "strings.jsonl": lambda domain: domain.known_outputs,
    "adapter-program.gguf": lambda domain: domain.adapter_path("program"),
    "dev.jsonl": lambda domain: load_split(domain, "dev"),
    "domain.toml": lambda domain: domain,
}


@pytest.mark.parametrize(("name", "use"), FILES.items(), ids=FILES)
def test_a_file_that_is_a_link_out_of_the_folder_is_refused_without_showing_it(
    name: str, use: Callable[[Domain], object], settings: Settings, tmp_path: Path
) -> None:
    folder = settings('grammar = "grammar.lark"', 'grammar = "grammar.lark"\nstrings = "strings.jsonl"')
    (folder / "strings.jsonl").write_text(to_json_lines([{"program": "(ask (lamp hall))"}]))
    (tmp_path / "secret").write_text(f"{SECRET}\n")
    (folder / name).unlink(missing_ok=True)
    (folder / name).symlink_to(tmp_path / "secret")
    error = error_of(lambda: use(load_domain(folder)))
    assert "the path leads out of the domain folder" in error.message
    assert SECRET not in str(error)


def test_a_grammar_folder_with_a_link_out_of_it_is_refused(settings: Settings, tmp_path: Path) -> None:
    folder = settings('grammar = "grammar.lark"', 'grammar = "grammar"')
    (folder / "grammar").mkdir()
    (tmp_path / "secret.scfg").write_text(SECRET)
    (folder / "grammar" / "rules.scfg").symlink_to(tmp_path / "secret.scfg")
    error = error_of(load_domain(folder).check)
    assert "the path leads out of the domain folder" in error.message
    assert SECRET not in str(error)


@pytest.mark.parametrize(
    "path", ["/etc/passwd", "../grammar.lark", "a/../../b", "", "a\\u0000b", "x" * 300, "\\u001b"]
)
@pytest.mark.parametrize(
    ("old", "key"),
    [
        ('grammar = "grammar.lark"', "grammar"),
        ('copy = ["NOTE"]', "strings"),
        ('prompt = "lisp" ', "prompt"),
    ],
)
def test_a_path_in_the_settings_must_stay_in_the_folder(old: str, key: str, path: str, settings: Settings) -> None:
    error = error_of(lambda: load_domain(settings(old, f'{key} = "{path}"')))
    assert isinstance(error, DomainError)
    assert f"{key}" in error.message
    assert "the path" in error.message


def test_a_grammar_on_the_command_line_may_be_anywhere(folder: Path, tmp_path: Path) -> None:
    (folder / "grammar.lark").rename(tmp_path / "mine.lark")
    load_domain(folder, grammar=tmp_path / "mine.lark", copy=False).check()


def test_code_runs_from_python_unless_the_caller_says_otherwise(folder: Path) -> None:
    assert load_domain(folder).execute("(ask (radio kitchen))") == "on"
    domain = load_domain(folder, allow_code=False)
    domain.check()
    with pytest.raises(ExecutionError, match="the executor was not run: the folder is not trusted"):
        domain.execute("(ask (radio kitchen))")
    with pytest.raises(UsageError, match="the folder is not trusted"):
        domain.require_code()
    assert load_domain("starter", allow_code=False).execute("(ask (radio kitchen))") == "on"
