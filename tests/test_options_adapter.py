"""Options with an adapter: which adapter is used, and the prompt and search settings that it changes."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fewparse.domains.load import load_domain
from fewparse.errors import CorruptModel, DomainError, ModelUnavailable, UsageError
from fewparse.options import Options
from fewparse.parser import Parser
from support.adapters import provenance, write_adapter
from support.domain_files import copy_starter, write_domain
from support.toy_model import ToyModel

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


def test_the_adapter_of_another_target_is_not_looked_at(folder: Path) -> None:
    tiny_adapter(folder / "adapter-canonical.gguf", provenance=provenance(target="canonical"))
    assert (resolve(folder).adapter, resolve(folder).adapter_note) == (None, None)
    assert resolve(folder, target="canonical").adapter is not None


def outputs_sha256(folder: Path) -> str | None:
    return load_domain(folder).constraint_kind.outputs_sha256("program")


OTHER_USES: dict[str, tuple[dict[str, Any], str]] = {
    "target": ({"target": "canonical"}, "the target canonical"),
    "domain": ({"domain": "kitchen"}, "the domain kitchen"),
    "grammar": ({"outputs_sha256": "2" * 64}, "another grammar"),
}


@pytest.mark.parametrize("what", OTHER_USES)
def test_an_adapter_for_another_use_is_used_only_if_it_is_named(folder: Path, what: str) -> None:
    changed, reason = OTHER_USES[what]
    path = tiny_adapter(folder / "adapter-program.gguf", provenance=provenance(**changed))
    options = resolve(folder)
    assert (options.adapter, options.prompt) == (None, "lisp")
    note = str(options.adapter_note)
    assert note.startswith(f"{path} is not used, because it was tuned for {reason}: the model is prompted")
    assert f"fewparse tune {folder}. To use this one all the same: --adapter {path}" in note
    model = ToyModel()
    model.name = EMBEDDED
    with pytest.warns(UserWarning, match=f"tuned for {reason}"):
        Parser.from_domain(folder, model)
    if what != "target":
        named = resolve(folder, adapter=path)
        assert named.adapter is not None
        assert named.adapter_note is None


def test_a_copy_of_a_domain_under_another_name_uses_its_adapter(folder: Path) -> None:
    own = provenance(domain="before", outputs_sha256=outputs_sha256(folder))
    tiny_adapter(folder / "adapter-program.gguf", provenance=own)
    assert resolve(folder).adapter is not None


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ("// There is", "// A comment.\n// There is", True),
        ('"on" | "off"', '"off"|"on"', True),
        ('"radio"', '"radio" | "fan"', False),
        ("[1-9]", "[2-9]", False),
    ],
)
def test_only_a_change_of_the_rules_makes_another_grammar(folder: Path, old: str, new: str, same: bool) -> None:
    before = outputs_sha256(folder)
    grammar = folder / "grammar.lark"
    assert old in grammar.read_text()
    grammar.write_text(grammar.read_text().replace(old, new, 1))
    assert (outputs_sha256(folder) == before) is same


def test_more_examples_do_not_make_another_grammar_even_if_it_is_induced(folder: Path) -> None:
    settings = folder / "domain.toml"
    settings.write_text(settings.read_text().replace('kind = "grammar"', 'kind = "induced"'))
    assert outputs_sha256(folder) is None
    tiny_adapter(folder / "adapter-program.gguf", provenance=provenance())
    assert resolve(folder).adapter is not None


def test_the_outputs_of_a_schema_are_those_of_its_keywords(tmp_path: Path) -> None:
    def sha256(schema: dict[str, Any]) -> str | None:
        settings = 'name = "j"\n[constraint]\nkind = "json-schema"\nschema = "s.json"\n'
        folder = write_domain(tmp_path, settings, [], {"s.json": json.dumps(schema)})
        return outputs_sha256(folder)

    assert sha256({"type": "integer"}) == sha256({"type": "integer", "description": "a number"})
    assert sha256({"type": "integer"}) != sha256({"type": "integer", "minimum": 3})


def test_the_adapter_is_in_the_folder_of_the_examples(folder: Path, own_adapter: Path, tmp_path: Path) -> None:
    elsewhere = replace(load_domain(folder), examples_folder=tmp_path)
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
    assert (default.search.decoder, default.search.width, default.rerank) == ("speculative", 5, 1.0)
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
