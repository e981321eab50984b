"""Which adapter a parser takes, and what a domain says of the way to ask under it."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fewparse.domains.load import bundled_domains, load_domain
from fewparse.errors import CorruptModel, DomainError, ModelUnavailable, UsageError
from fewparse.options import Options
from support.adapters import provenance, write_adapter

TUNED = '\n[tuned]\ndecoder = "beam"\nwidth = 3\nrerank = 0.5\n'
EMBEDDED = "embedded:smollm2-135m"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the starter."""
    return Path(shutil.copytree(bundled_domains()["starter"], tmp_path / "home"))


@pytest.fixture
def own(folder: Path) -> Path:
    """The domain's own adapter."""
    return tiny_adapter(folder / "adapter-program.gguf", provenance=provenance())


def tiny_adapter(path: Path, **chosen: Any) -> Path:
    return write_adapter(path, blocks=[0], matrices=["attn_v"], **chosen)


def say(folder: Path, more: str) -> None:
    with (folder / "domain.toml").open("a") as settings:
        settings.write(more)


def resolve(folder: Path, model: str = EMBEDDED, **chosen: Any) -> Options:
    return Options.resolve(load_domain(folder), model, **chosen)


@pytest.mark.parametrize("model", ["embedded", EMBEDDED])
def test_the_embedded_model_is_asked_under_the_domains_adapter(folder: Path, own: Path, model: str) -> None:
    adapter = resolve(folder, model).adapter
    assert adapter is not None
    assert adapter.path == own
    assert adapter.provenance == provenance()


@pytest.mark.parametrize(
    "model", ["", "openai:x", "openai-chat:embedded", "gguf:embedded.gguf", "hf:embedded", "embedded2", "toy"]
)
def test_other_models_are_asked_without_it(folder: Path, own: Path, model: str) -> None:
    assert resolve(folder, model) == resolve(folder, adapter="none")


def test_without_an_adapter_the_domains_own_settings_are_in_force(folder: Path) -> None:
    options = resolve(folder)
    assert options.adapter is None
    assert (options.prompt, options.examples) == ("lisp", 8)


def test_whoever_wants_none_gets_none(folder: Path, own: Path) -> None:
    options = resolve(folder, adapter="none")
    assert options.adapter is None
    assert (options.prompt, options.examples) == ("lisp", 8)


def test_an_adapter_for_another_target_is_not_taken(folder: Path, own: Path) -> None:
    own.rename(folder / "adapter-canonical.gguf")
    assert resolve(folder).adapter is None
    assert resolve(folder, target="canonical").adapter is not None


def test_an_adapter_lies_beside_the_examples_rather_than_the_settings(
    folder: Path, own: Path, tmp_path: Path
) -> None:
    elsewhere = replace(load_domain(folder), data=tmp_path)
    assert Options.resolve(elsewhere, EMBEDDED).adapter is None
    own.rename(tmp_path / own.name)
    assert Options.resolve(elsewhere, EMBEDDED).adapter is not None


def test_under_a_grammar_that_a_caller_put_in_place_the_adapter_is_out_of_place(folder: Path, own: Path) -> None:
    replaced = load_domain(folder, grammar=folder / "grammar.lark")
    assert Options.resolve(replaced, EMBEDDED).adapter is None
    asked = Options.resolve(replaced, EMBEDDED, adapter=own).adapter
    assert asked is not None
    assert asked.path == own


@pytest.mark.parametrize("as_given", [str, Path])
def test_an_adapter_that_is_asked_for_is_taken_whatever_the_model_and_the_domain_have(
    folder: Path, own: Path, tmp_path: Path, as_given: Callable[[Path], str | Path]
) -> None:
    other = tiny_adapter(tmp_path / "other.gguf", provenance=provenance(prompt="chatml"))
    for model in (EMBEDDED, "gguf:some.gguf"):
        options = resolve(folder, model, adapter=as_given(other))
        assert options.adapter is not None
        assert options.adapter.path == other
        assert (options.prompt, options.examples) == ("chatml", 0)


def test_a_path_may_begin_with_the_sign_for_home(folder: Path, own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("USERPROFILE", str(folder))
    adapter = resolve(folder, adapter=f"~/{own.name}").adapter
    assert adapter is not None
    assert adapter.path == own


def test_an_adapter_that_is_asked_for_and_not_there_is_told(folder: Path) -> None:
    with pytest.raises(ModelUnavailable, match=r"nowhere\.gguf cannot be read"):
        resolve(folder, adapter=folder / "nowhere.gguf")


def test_a_domains_adapter_that_is_damaged_is_told_rather_than_left_out(folder: Path, own: Path) -> None:
    own.write_bytes(own.read_bytes()[:100])
    with pytest.raises(CorruptModel, match="it is truncated") as caught:
        resolve(folder)
    assert str(own) in caught.value.message
    assert resolve(folder, adapter="none").adapter is None


def test_under_an_adapter_the_prompt_is_the_one_it_was_tuned_with(folder: Path, own: Path) -> None:
    options, usual = resolve(folder), resolve(folder, adapter="none")
    assert (options.prompt, options.examples) == ("tuned", 0)
    assert replace(options, adapter=None, prompt="lisp", examples=8) == usual


def test_what_a_caller_chooses_comes_first_under_an_adapter_too(folder: Path, own: Path) -> None:
    say(folder, TUNED)
    options = resolve(folder, prompt="chatml", examples=2, width=7, rerank=0.0)
    assert (options.prompt, options.examples, options.search.width, options.rerank) == ("chatml", 2, 7, 0.0)
    assert options.search.decoder == "beam"
    assert options.adapter is not None


def test_somebody_elses_adapter_leaves_all_settings_as_the_domain_has_them(folder: Path, tmp_path: Path) -> None:
    say(folder, TUNED)
    options = resolve(folder, adapter=tiny_adapter(tmp_path / "theirs.gguf"))
    assert options.adapter is not None
    assert replace(options, adapter=None) == resolve(folder, adapter="none")


def test_the_tuned_table_sets_the_search_under_an_adapter_only(folder: Path, own: Path) -> None:
    say(folder, TUNED)
    options, usual = resolve(folder), resolve(folder, adapter="none")
    assert (options.search.decoder, options.search.width, options.rerank) == ("beam", 3, 0.5)
    assert (usual.search.decoder, usual.search.width, usual.rerank) == ("speculative", 5, 0.0)
    assert (options.n_best, usual.n_best) == (3, 5)


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
    say(folder, f"\n[tuned]\nrerank = 0.5\n{mistake}\n")
    path = folder / "domain.toml"
    line = path.read_text().splitlines().index(mistake) + 1
    with pytest.raises(DomainError) as caught:
        load_domain(folder)
    assert caught.value.message.startswith(f"{path}:{line}: {problem}")
    assert mistake in caught.value.message


def test_an_unknown_key_of_the_tuned_table_comes_with_a_suggestion(folder: Path) -> None:
    say(folder, "\n[tuned]\nwidht = 3\n")
    with pytest.raises(DomainError) as caught:
        load_domain(folder)
    assert caught.value.hint == "Did you mean width?"


def test_a_vote_under_an_adapter_needs_an_executor_as_ever(folder: Path, own: Path) -> None:
    say(folder, "\n[tuned]\nvote = true\n")
    assert resolve(folder).vote
    settings = folder / "domain.toml"
    settings.write_text(settings.read_text().replace("executor =", "# executor ="))
    with pytest.raises(UsageError, match="a vote needs an executor"):
        resolve(folder)


def test_an_adapter_that_was_tuned_for_the_other_target_is_refused(folder: Path, own: Path) -> None:
    with pytest.raises(UsageError, match="tuned for the target program, not for canonical"):
        resolve(folder, adapter=own, target="canonical")


def test_what_the_table_for_tuned_models_leaves_out_is_as_for_others(folder: Path, own: Path) -> None:
    say(folder, '\n[tuned]\ndecoder = "greedy"\n')
    tuned, prompted = resolve(folder), resolve(folder, adapter="none")
    assert (tuned.search.decoder, tuned.rerank) == ("greedy", prompted.rerank)
    assert tuned.search.width == prompted.search.width
