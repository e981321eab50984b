"""Options with an adapter: which adapter is used, and the prompt and search settings that it changes."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fewparse.domains.load import load_domain
from fewparse.errors import CorruptModel, DomainError, ModelUnavailable, UsageError
from fewparse.options import Options
from support.adapters import provenance, write_adapter
from support.domain_files import copy_starter

TUNED = '\n[tuned]\ndecoder = "beam"\nwidth = 3\nrerank = 0.5\n'
EMBEDDED = "embedded:smollm2-135m"
GEMMA = "embedded:gemma3-270m"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the starter domain."""
    return copy_starter(tmp_path / "home")


@pytest.fixture
def own_adapter(folder: Path) -> Path:
    """The domain's own adapter."""
    return tiny_adapter(folder / "adapter-program.gguf", provenance=provenance())


def tiny_adapter(path: Path, **chosen: Any) -> Path:
    return write_adapter(path, blocks=[0], matrices=["attn_v"], **chosen)


def append_settings(folder: Path, more: str) -> None:
    with (folder / "domain.toml").open("a") as settings:
        settings.write(more)


def resolve(folder: Path, model: str = EMBEDDED, **chosen: Any) -> Options:
    return Options.resolve(load_domain(folder), model, **chosen)


@pytest.mark.parametrize("model", ["embedded", EMBEDDED])
def test_the_embedded_model_uses_the_adapter_of_the_domain(folder: Path, own_adapter: Path, model: str) -> None:
    adapter = resolve(folder, model).adapter
    assert adapter is not None
    assert adapter.path == own_adapter
    assert adapter.provenance == provenance()


@pytest.mark.parametrize(
    "model",
    ["", "openai:x", "openai-chat:embedded", "gguf:embedded.gguf", "hf:embedded", "embedded2", "toy", GEMMA],
)
def test_other_models_do_not_use_the_adapter_of_the_domain(folder: Path, own_adapter: Path, model: str) -> None:
    assert resolve(folder, model) == resolve(folder, adapter="none")


def test_without_an_adapter_the_settings_of_the_domain_are_used(folder: Path) -> None:
    options = resolve(folder)
    assert options.adapter is None
    assert (options.prompt, options.examples) == ("lisp", 8)


def test_the_adapter_of_the_domain_can_be_disabled(folder: Path, own_adapter: Path) -> None:
    options = resolve(folder, adapter="none")
    assert options.adapter is None
    assert (options.prompt, options.examples) == ("lisp", 8)


def test_an_adapter_for_another_target_is_not_used(folder: Path, own_adapter: Path) -> None:
    own_adapter.rename(folder / "adapter-canonical.gguf")
    assert resolve(folder).adapter is None
    assert resolve(folder, target="canonical").adapter is not None


def test_the_adapter_is_in_the_folder_of_the_examples(folder: Path, own_adapter: Path, tmp_path: Path) -> None:
    elsewhere = replace(load_domain(folder), data=tmp_path)
    assert Options.resolve(elsewhere, EMBEDDED).adapter is None
    own_adapter.rename(tmp_path / own_adapter.name)
    assert Options.resolve(elsewhere, EMBEDDED).adapter is not None


def test_with_a_replaced_grammar_only_an_explicit_adapter_is_used(folder: Path, own_adapter: Path) -> None:
    replaced = load_domain(folder, grammar=folder / "grammar.lark")
    assert Options.resolve(replaced, EMBEDDED).adapter is None
    explicit = Options.resolve(replaced, EMBEDDED, adapter=own_adapter).adapter
    assert explicit is not None
    assert explicit.path == own_adapter


@pytest.mark.parametrize("as_given", [str, Path])
def test_an_explicit_adapter_is_used_for_any_model_and_domain(
    folder: Path, own_adapter: Path, tmp_path: Path, as_given: Callable[[Path], str | Path]
) -> None:
    other = tiny_adapter(tmp_path / "other.gguf", provenance=provenance(prompt="chatml"))
    for model in (EMBEDDED, "gguf:some.gguf"):
        options = resolve(folder, model, adapter=as_given(other))
        assert options.adapter is not None
        assert options.adapter.path == other
        assert (options.prompt, options.examples) == ("chatml", 0)


def test_a_tilde_in_a_path_is_expanded(folder: Path, own_adapter: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("USERPROFILE", str(folder))
    adapter = resolve(folder, adapter=f"~/{own_adapter.name}").adapter
    assert adapter is not None
    assert adapter.path == own_adapter


def test_a_missing_explicit_adapter_is_an_error(folder: Path) -> None:
    with pytest.raises(ModelUnavailable, match=r"missing\.gguf cannot be read"):
        resolve(folder, adapter=folder / "missing.gguf")


def test_a_damaged_adapter_of_the_domain_is_an_error(folder: Path, own_adapter: Path) -> None:
    own_adapter.write_bytes(own_adapter.read_bytes()[:100])
    with pytest.raises(CorruptModel, match="it is truncated") as caught:
        resolve(folder)
    assert str(own_adapter) in caught.value.message
    assert resolve(folder, adapter="none").adapter is None


def test_with_an_adapter_the_prompt_is_the_one_it_was_tuned_with(folder: Path, own_adapter: Path) -> None:
    options, default = resolve(folder), resolve(folder, adapter="none")
    assert (options.prompt, options.examples) == ("tuned", 0)
    assert replace(options, adapter=None, prompt="lisp", examples=8) == default


def test_explicit_options_take_precedence_with_an_adapter_too(folder: Path, own_adapter: Path) -> None:
    append_settings(folder, TUNED)
    options = resolve(folder, prompt="chatml", examples=2, width=7, rerank=0.0)
    assert (options.prompt, options.examples, options.search.width, options.rerank) == ("chatml", 2, 7, 0.0)
    assert options.search.decoder == "beam"
    assert options.adapter is not None


def test_an_adapter_without_provenance_does_not_change_the_settings(folder: Path, tmp_path: Path) -> None:
    append_settings(folder, TUNED)
    options = resolve(folder, adapter=tiny_adapter(tmp_path / "other.gguf"))
    assert options.adapter is not None
    assert replace(options, adapter=None) == resolve(folder, adapter="none")


def test_the_tuned_table_applies_only_with_an_adapter(folder: Path, own_adapter: Path) -> None:
    append_settings(folder, TUNED)
    options, default = resolve(folder), resolve(folder, adapter="none")
    assert (options.search.decoder, options.search.width, options.rerank) == ("beam", 3, 0.5)
    assert (default.search.decoder, default.search.width, default.rerank) == ("speculative", 5, 0.0)
    assert (options.n_best, default.n_best) == (3, 5)


@pytest.mark.parametrize(
    ("mistake", "problem"),
    [
        ("widht = 3", "unknown key `tuned.widht`"),
        ("examples = 3", "unknown key `tuned.examples`"),
        ("width = 0", "`tuned.width`: "),
        ('decoder = "guess"', "`tuned.decoder`: "),
    ],
)
def test_a_mistake_in_the_tuned_table_is_shown_at_its_line(folder: Path, mistake: str, problem: str) -> None:
    append_settings(folder, f"\n[tuned]\nrerank = 0.5\n{mistake}\n")
    path = folder / "domain.toml"
    line = path.read_text().splitlines().index(mistake) + 1
    with pytest.raises(DomainError) as caught:
        load_domain(folder)
    assert caught.value.message.startswith(f"{path}:{line}: {problem}")
    assert mistake in caught.value.message


def test_an_unknown_key_of_the_tuned_table_is_reported_with_a_suggestion(folder: Path) -> None:
    append_settings(folder, "\n[tuned]\nwidht = 3\n")
    with pytest.raises(DomainError) as caught:
        load_domain(folder)
    assert caught.value.hint == "Did you mean width?"


def test_a_vote_with_an_adapter_needs_an_executor(folder: Path, own_adapter: Path) -> None:
    append_settings(folder, "\n[tuned]\nvote = true\n")
    assert resolve(folder).vote
    settings = folder / "domain.toml"
    settings.write_text(settings.read_text().replace("executor =", "# executor ="))
    with pytest.raises(UsageError, match="a vote needs an executor"):
        resolve(folder)


def test_an_adapter_tuned_for_another_target_is_rejected(folder: Path, own_adapter: Path) -> None:
    with pytest.raises(UsageError, match="tuned for the target program, not for canonical"):
        resolve(folder, adapter=own_adapter, target="canonical")


def test_settings_missing_in_the_tuned_table_keep_their_values(folder: Path, own_adapter: Path) -> None:
    append_settings(folder, '\n[tuned]\ndecoder = "greedy"\n')
    tuned, prompted = resolve(folder), resolve(folder, adapter="none")
    assert (tuned.search.decoder, tuned.rerank) == ("greedy", prompted.rerank)
    assert tuned.search.width == prompted.search.width
