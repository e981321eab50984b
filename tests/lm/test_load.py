"""Opening models by name: the table of model kinds, and kinds of installed packages."""

from collections.abc import Callable
from pathlib import Path

import pytest

from fewparse.cli.remote import remote_settings
from fewparse.errors import ModelUnavailable, UnknownName, UsageError
from fewparse.lm import load
from fewparse.lm.load import MODEL_KINDS, kind_of, model_names, open_model
from fewparse.registry import Registry
from support.toy_model import ToyModel

Install = Callable[..., None]

PLUGIN = """
from fewparse.lm.load import ModelSettings, model_kind
from support.toy_model import ToyModel


@model_kind(argument="SEED")
def open_toy(seed, settings):
    return ToyModel(int(seed))


@model_kind(argument="NAME", remote=True)
def open_remote(name, settings):
    model = ToyModel()
    model.name = f"{name} at {settings.remote.base_url}"
    return model


def plain_opener(name, settings):
    return ToyModel(len(name))
"""


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """A function that installs a package with these entry points, each a kind and its opener."""

    def make(**kinds: str) -> None:
        (tmp_path / "toy_plugin.py").write_text(PLUGIN)
        info = tmp_path / "toy_plugin-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: toy-plugin\nVersion: 1.0\n")
        points = "\n".join(f"{name.replace('_', '-')} = {opener}" for name, opener in kinds.items())
        (info / "entry_points.txt").write_text(f"[fewparse.models]\n{points}\n")
        monkeypatch.syspath_prepend(str(tmp_path))
        monkeypatch.setattr(load, "MODEL_KINDS", Registry("model", MODEL_KINDS.bundled, group="fewparse.models"))

    return make


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("gpt-4o", "openai-chat:gpt-4o"),
        ("o3", "openai-chat:o3"),
        ("claude-sonnet", "openai-chat:claude-sonnet"),
        ("./models/small.gguf", "gguf:./models/small.gguf"),
        ("org/model-1.5", "hf:org/model-1.5, or openai-chat:org/model-1.5 behind a server"),
        ("embeded", "embedded[:NAME]"),
    ],
)
def test_a_model_without_its_kind_is_an_error_that_suggests_one(name: str, form: str) -> None:
    with pytest.raises(UnknownName, match="unknown model") as caught:
        open_model(name)
    assert caught.value.hint == f"Did you mean {form}?"
    with pytest.raises(UnknownName, match="unknown model"):
        remote_settings([name], base_url="http://127.0.0.1:1/v1")


def test_the_names_of_the_bundled_kinds() -> None:
    assert model_names() == (
        "embedded[:NAME]",
        "gguf:PATH",
        "hf:PATH_OR_NAME",
        "openai:NAME",
        "openai-chat:NAME",
    )
    assert model_names(lambda kind: kind.remote) == ("openai:NAME", "openai-chat:NAME")
    assert model_names(lambda kind: kind.adapters) == ("embedded[:NAME]", "gguf:PATH")


def test_a_folder_is_not_a_model(tmp_path: Path) -> None:
    with pytest.raises(ModelUnavailable, match="cannot be read"):
        open_model(f"gguf:{tmp_path}")


def test_the_error_for_an_unknown_model_suggests_a_name() -> None:
    with pytest.raises(UnknownName, match="embeded") as caught:
        open_model("embeded")
    assert caught.value.hint == "Did you mean embedded[:NAME]?"


@pytest.mark.parametrize("name", ["", ":", "embedded:", "nowhere:model"])
def test_other_names_are_unknown(name: str) -> None:
    with pytest.raises(UnknownName, match="unknown model"):
        open_model(name)


def test_the_error_for_an_unknown_embedded_model_suggests_a_name() -> None:
    with pytest.raises(UnknownName, match="unknown embedded model 'smollm'") as caught:
        open_model("embedded:smollm")
    assert caught.value.hint == "Did you mean smollm2-135m?"


@pytest.mark.parametrize("name", ["gguf", "gguf:"])
def test_gguf_needs_a_path(name: str) -> None:
    with pytest.raises(UsageError, match="needs a path"):
        open_model(name)


@pytest.mark.parametrize("name", ["embedded", "embedded:smollm2-135m"])
def test_the_default_model_has_two_names_and_may_be_closed_twice(name: str) -> None:
    opened = open_model(name)
    assert opened.name == "embedded:smollm2-135m"
    opened.close()
    opened.close()


def test_an_entry_point_adds_a_kind(install: Install) -> None:
    install(toy="toy_plugin:open_toy")
    opened = open_model("toy:7")
    assert isinstance(opened, ToyModel)
    assert opened.seed == 7
    assert model_names()[-1] == "toy:SEED"
    with pytest.raises(UnknownName) as caught:
        open_model("toyy:7")
    assert caught.value.hint == "Did you mean toy:SEED?"


def test_a_remote_kind_takes_the_options_of_a_server(install: Install) -> None:
    install(toy_served="toy_plugin:open_remote")
    remote = remote_settings(["toy-served:a"], base_url="http://127.0.0.1:9")
    assert remote is not None
    assert open_model("toy-served:a", remote=remote).name == "a at http://127.0.0.1:9"


def test_a_plain_opener_is_a_local_kind(install: Install) -> None:
    install(toy="toy_plugin:plain_opener")
    opened = open_model("toy:abc")
    assert isinstance(opened, ToyModel)
    assert opened.seed == 3
    kind = kind_of("toy:abc")
    assert kind is not None
    assert (kind.argument, kind.remote, kind.adapters) == ("NAME", False, False)
    with pytest.raises(UsageError, match="--base-url"):
        remote_settings(["toy:abc"], base_url="http://127.0.0.1:9")


def test_a_kind_that_cannot_be_imported_is_skipped_with_a_warning(install: Install) -> None:
    install(broken="no_such_module:opener", toy="toy_plugin:open_toy")
    with pytest.warns(UserWarning, match="`broken` of toy-plugin is skipped: it cannot be imported") as caught:
        assert isinstance(open_model("toy:1"), ToyModel)
    assert len(caught) == 1
    with pytest.raises(UnknownName):
        open_model("broken:1")


def test_a_kind_with_a_bundled_name_is_skipped_with_a_warning(install: Install) -> None:
    install(gguf="toy_plugin:open_toy")
    with (
        pytest.warns(UserWarning, match="`gguf` of toy-plugin is skipped"),
        pytest.raises(UsageError, match="needs a path"),
    ):
        open_model("gguf:")
