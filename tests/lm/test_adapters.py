"""Adapters: they change the weights of a model, share its cache, and are rejected if they do not fit."""

import math
import struct
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import combinations
from pathlib import Path
from threading import Barrier
from typing import Any

import gguf
import numpy as np
import pytest
from numpy.typing import NDArray

from fewparse.errors import CorruptModel, FewparseError, ModelError, ModelUnavailable, UsageError
from fewparse.lm.adapter import Adapter, read_adapter
from fewparse.lm.embedded import EmbeddedModel
from fewparse.lm.llama_model import Llama
from fewparse.lm.load import with_adapter
from fewparse.lm.local import LocalModel
from fewparse.lm.model import Completion, NextTokens, Sampling
from fewparse.lm.usage import Usage
from fewparse.parser import Parser
from fewparse.prompt import Prompt
from support.adapters import BLOCKS, SHAPES, close, provenance, write_adapter
from support.domain_files import copy_starter
from support.prompts import plain_prompt
from support.toy_model import ToyModel

STOP = b"\n"
NOISE = 1e-3
BATCH_NOISE = 1.0  # nats that the shape of a batch may cost a quantised model
TIMEOUT = 300
FRUITS = plain_prompt("Fruits: apple, pear,")
NUMBERS = plain_prompt("One, two, three,")
SAMPLING = Sampling(n=2, temperature=1.0, max_tokens=5, seed=3)

Make = Callable[..., LocalModel]


@pytest.fixture
def under(model: EmbeddedModel, tmp_path: Path) -> Make:
    """A function that writes an adapter and applies it to the model."""

    def make(name: str = "some.gguf", **chosen: Any) -> LocalModel:
        return model.with_adapter(read_adapter(write_adapter(tmp_path / name, **chosen)))

    return make


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The paths of the adapters that the native library loads."""
    paths: list[Path] = []
    load = Llama.load_adapter

    def spy(llama: Llama, path: Path) -> int:
        paths.append(path)
        return load(llama, path)

    monkeypatch.setattr(Llama, "load_adapter", spy)
    return paths


def next_tokens(model: LocalModel, prompt: Prompt = FRUITS, prefix: str = "") -> NextTokens:
    return model.next_tokens(prompt, [model.tokenize(prefix)], 5, STOP, Usage())[0]


def scores(model: LocalModel) -> tuple[float, ...]:
    return model.score(FRUITS, [()], [model.tokenize(" banana, or a plum")], Usage())[0]


def loading_error(model: EmbeddedModel, path: Path) -> FewparseError:
    before = next_tokens(model)
    with pytest.raises(FewparseError) as caught:
        model.with_adapter(read_adapter(path))
    assert next_tokens(model) == before, "the model has changed"
    return caught.value


def test_an_adapter_with_zero_weights_changes_nothing(model: EmbeddedModel, under: Make) -> None:
    assert scores(under(strength=0)) == pytest.approx(scores(model), abs=NOISE)


def test_a_stronger_adapter_changes_more(model: EmbeddedModel, under: Make) -> None:
    def change(strength: float) -> float:
        other = under(f"{strength}.gguf", strength=strength)
        return sum(abs(a - b) for a, b in zip(scores(other), scores(model), strict=True))

    weak, strong = change(0.01), change(0.1)
    assert weak > NOISE
    assert strong > 5 * weak


def test_an_adapter_may_change_every_matrix(model: EmbeddedModel, under: Make) -> None:
    everywhere = under(strength=0.005, blocks=range(BLOCKS), matrices=SHAPES)
    assert abs(next_tokens(everywhere).end_logprob - next_tokens(model).end_logprob) > NOISE
    assert next_tokens(everywhere).best[0].logprob > -5


def test_the_model_and_its_adapters_can_be_queried_in_any_order(model: EmbeddedModel, under: Make) -> None:
    models = {"base": model, "a": under("a.gguf", seed=1), "b": under("b.gguf", seed=2)}

    def query(name: str) -> list[NextTokens]:
        return [next_tokens(models[name]), next_tokens(models[name], prefix=" banana")]

    alone = {}
    for name, some in models.items():
        next_tokens(some, NUMBERS)
        alone[name] = query(name)
    assert len({results[0].end_logprob for results in alone.values()}) == 3
    for name in ("base", "a", "b", "base", "b", "a", "a", "base"):
        assert query(name) == alone[name]


def test_the_prompt_is_evaluated_again_only_for_another_adapter(model: EmbeddedModel, under: Make) -> None:
    some, other = under("a.gguf", seed=1), under("b.gguf", seed=2)
    for current, evaluated in ((some, True), (some, False), (other, True), (model, True), (some, True)):
        usage = Usage()
        current.next_tokens(FRUITS, [()], 1, STOP, usage)
        assert usage.prefill_tokens == evaluated * model.prompt_length(FRUITS)


def test_scores_and_samples_use_the_adapter(model: EmbeddedModel, under: Make) -> None:
    some = under()
    alone = scores(some), some.sample(FRUITS, [()], SAMPLING, Usage())
    between = scores(model), model.sample(FRUITS, [()], SAMPLING, Usage())
    assert alone[0] != pytest.approx(between[0], abs=NOISE)
    assert alone[1] != between[1]
    assert (scores(some), some.sample(FRUITS, [()], SAMPLING, Usage())) == alone


def test_equal_files_are_loaded_once(under: Make, loaded: list[Path]) -> None:
    first, again = under("first.gguf", seed=7), under("first.gguf", seed=7)
    copy = under("copy.gguf", seed=7)
    assert [path.name for path in loaded] == ["first.gguf"]
    assert next_tokens(first) == next_tokens(again) == next_tokens(copy)
    under("other.gguf", seed=8)
    assert [path.name for path in loaded] == ["first.gguf", "other.gguf"]


def test_a_changed_file_is_loaded_again(under: Make, loaded: list[Path]) -> None:
    before = next_tokens(under("tuned.gguf", seed=17))
    assert next_tokens(under("tuned.gguf", seed=18)) != before
    assert len(loaded) == 2


def test_a_file_that_changed_after_it_was_read_is_not_loaded(
    model: EmbeddedModel, tmp_path: Path, loaded: list[Path]
) -> None:
    adapter = read_adapter(write_adapter(tmp_path / "some.gguf", seed=19))
    write_adapter(adapter.path, seed=20)
    with pytest.raises(CorruptModel, match="has changed since it was read"):
        model.with_adapter(adapter)
    assert not loaded


def test_a_model_with_an_adapter_differs_in_its_name_only(model: EmbeddedModel, under: Make) -> None:
    some = under("mine.gguf")
    assert some.name == f"{model.name} + mine.gguf"
    assert some.vocabulary is model.vocabulary
    assert some.context_length == model.context_length
    assert some.tokenize(" banana") == model.tokenize(" banana")


def test_closing_a_model_with_an_adapter_leaves_the_others_open(model: EmbeddedModel, under: Make) -> None:
    some = under()
    before = next_tokens(model), next_tokens(some)
    some.close()
    assert (next_tokens(model), next_tokens(some)) == before


def run_in_threads(
    models: Sequence[LocalModel], work: Callable[[LocalModel, Callable[[], Any]], Any]
) -> list[Any]:
    """Run work with each model in a thread of its own; its second argument waits for the other threads."""
    together = Barrier(len(models), timeout=TIMEOUT)
    with ThreadPoolExecutor(len(models)) as pool:
        return list(pool.map(lambda model: work(model, together.wait), models))


def test_concurrent_samples_equal_those_of_each_model_alone(model: EmbeddedModel, under: Make) -> None:
    def sample(some: LocalModel, wait: Callable[[], Any] = lambda: None) -> list[list[list[Completion]]]:
        samples = []
        for prompt in (FRUITS, NUMBERS, FRUITS):
            wait()
            samples.append(some.sample(prompt, [()], SAMPLING, Usage()))
        return samples

    models = [model, under("a.gguf", seed=1), under("b.gguf", seed=2)]
    alone = [sample(some) for some in models]
    assert alone[0] != alone[1] != alone[2] != alone[0]
    assert run_in_threads(models, sample) == alone


def test_searches_that_alternate_at_every_token_do_not_affect_each_other(
    model: EmbeddedModel, under: Make
) -> None:
    tokens = model.tokenize(" banana, plum, fig")

    def step_through(some: LocalModel, wait: Callable[[], Any] = lambda: None) -> list[float]:
        steps: list[float] = []
        for i in range(len(tokens)):
            wait()
            steps += some.score(FRUITS, [tokens[:i]], [tokens[i : i + 1]], Usage())[0]
        return steps

    models = [model, under("a.gguf", seed=1, strength=0.1), under("b.gguf", seed=2, strength=0.2)]
    alone = [step_through(some) for some in models]
    for some, other in combinations(alone, 2):
        assert max(abs(a - b) for a, b in zip(some, other, strict=True)) > 2 * BATCH_NOISE
    for found, expected in zip(run_in_threads(models, step_through), alone, strict=True):
        assert found == pytest.approx(expected, abs=BATCH_NOISE)


def test_an_adapter_for_other_weights_is_rejected_before_loading(
    model: EmbeddedModel, tmp_path: Path, loaded: list[Path]
) -> None:
    path = write_adapter(tmp_path / "foreign.gguf", provenance=provenance("0" * 64, base="embedded:another"))
    error = loading_error(model, path)
    assert isinstance(error, ModelError)
    assert error.message == (
        f"the adapter {path} was tuned for embedded:another, and {model.name} has other weights"
    )
    assert "--adapter none" in str(error.hint)
    assert not loaded


def test_an_adapter_for_these_weights_is_accepted(model: EmbeddedModel, under: Make) -> None:
    assert next_tokens(under(provenance=provenance(model.sha256))) != next_tokens(model)


@pytest.mark.parametrize("wrong", [{"too_wide": 32}, {"blocks": [BLOCKS]}])
def test_an_adapter_that_does_not_fit_is_rejected(
    model: EmbeddedModel, tmp_path: Path, wrong: dict[str, Any]
) -> None:
    path = write_adapter(tmp_path / "unfit.gguf", **wrong)
    error = loading_error(model, path)
    assert isinstance(error, CorruptModel)
    assert error.message == f"{path} is not an adapter for this model, or damaged"
    assert error.hint


@pytest.mark.parametrize("left", [0.999, 0.5, 0.1])
def test_a_truncated_adapter_is_rejected(model: EmbeddedModel, tmp_path: Path, left: float) -> None:
    path = write_adapter(tmp_path / "short.gguf")
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * left)])
    error = loading_error(model, path)
    assert isinstance(error, CorruptModel)
    assert str(path) in error.message


def test_damage_in_the_list_of_matrices_never_crashes(model: EmbeddedModel, tmp_path: Path) -> None:
    path = write_adapter(tmp_path / "damaged.gguf", blocks=[0], matrices=["attn_v"])
    content = path.read_bytes()
    start = content.index(b"blk.0")
    for at in range(start, start + 48):  # the name of a matrix, its shape, its type
        damaged = bytearray(content)
        damaged[at] ^= 1 << at % 8
        path.write_bytes(damaged)
        with pytest.raises(CorruptModel):
            model.with_adapter(read_adapter(path))
    assert next_tokens(model).best


@pytest.mark.parametrize("alpha", [math.nan, math.inf, -math.inf, 1e30])
def test_an_adapter_with_an_impossible_alpha_is_damaged(tmp_path: Path, alpha: float) -> None:
    path = write_adapter(tmp_path / "some.gguf")
    key = b"adapter.lora.alpha"
    at = path.read_bytes().index(key) + len(key) + 4
    overwrite(path, at, struct.pack("<f", alpha))
    with pytest.raises(CorruptModel, match=r"adapter\.lora\.alpha is"):
        read_adapter(path)


def test_an_alpha_of_another_type_is_damaged(tmp_path: Path) -> None:
    path = write_adapter(tmp_path / "some.gguf")
    key = b"adapter.lora.alpha"
    overwrite(path, path.read_bytes().index(key) + len(key), struct.pack("<Ii", 5, 16))
    with pytest.raises(CorruptModel, match=r"adapter\.lora\.alpha is 16"):
        read_adapter(path)


@pytest.mark.parametrize("kind", ["F16", "F32", "BF16"])
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("at", [0, -1])
def test_an_adapter_with_a_weight_that_is_not_finite_is_damaged(
    tmp_path: Path, kind: str, value: float, at: int
) -> None:
    weights = np.zeros((4, 576), np.float32)
    path = write_pair(tmp_path / "some.gguf", weights, kind)
    assert read_adapter(path).provenance is None
    weights.flat[at] = value
    write_pair(path, weights, kind)
    with pytest.raises(CorruptModel, match=r"attn_q\.weight\.lora_a has values that are not finite"):
        read_adapter(path)


def test_weights_may_be_in_single_half_or_bfloat16_precision(model: EmbeddedModel, tmp_path: Path) -> None:
    weights = (np.random.default_rng(0).integers(-8, 9, size=(4, 576)) / 4).astype(np.float32)
    found = []
    for kind in ("F16", "F32", "BF16"):
        path = write_pair(tmp_path / f"{kind}.gguf", weights, kind)
        found.append(scores(model.with_adapter(read_adapter(path))))
    assert found[1] == pytest.approx(found[0], abs=BATCH_NOISE)
    assert found[2] == pytest.approx(found[0], abs=BATCH_NOISE)
    assert found[0] != scores(model)


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"name": "blk.0.attn_q.weight.lora_x"}, "is not one of a pair"),
        ({"name": "blk.0.attn_norm.weight"}, "is not one of a pair"),
        ({"name": "blk.0.attn_k.weight.lora_b"}, "is not one of a pair"),
        ({"shape": (576, 5)}, "different ranks"),
    ],
)
def test_matrices_that_are_not_those_of_an_adapter_are_damaged(
    tmp_path: Path, changed: dict[str, Any], reason: str
) -> None:
    path = write_pair(tmp_path / "some.gguf", np.zeros((32, 576), np.float32), "F32", **changed)
    with pytest.raises(CorruptModel) as caught:
        read_adapter(path)
    assert reason in caught.value.message


@pytest.mark.parametrize("kind", ["I8", "Q8_0"])
def test_matrices_of_another_type_are_not_supported(tmp_path: Path, kind: str) -> None:
    path = write_pair(tmp_path / "some.gguf", np.zeros((32, 576), np.float32), kind)
    with pytest.raises(CorruptModel, match=f"has the type {kind}, not F32 or F16 or BF16"):
        read_adapter(path)


@pytest.mark.parametrize(
    ("base", "rows", "columns"),
    [("blk.0.attn_norm.weight", 1, 576), ("blk.0.attn_x.weight", 576, 576), ("blk.0.attn_q.weight", 577, 576)],
)
def test_the_reason_why_an_adapter_does_not_fit_is_given(
    model: EmbeddedModel, tmp_path: Path, loaded: list[Path], base: str, rows: int, columns: int
) -> None:
    weights = np.zeros((4, columns), np.float32)
    path = write_pair(tmp_path / "some.gguf", weights, "F32", base=base, shape=(rows, 4))
    error = loading_error(model, path)
    assert isinstance(error, CorruptModel)
    assert base in str(error.hint)
    assert not loaded


def test_an_adapter_of_another_architecture_does_not_fit(model: EmbeddedModel, tmp_path: Path) -> None:
    path = write_pair(tmp_path / "some.gguf", np.zeros((4, 576), np.float32), "F32", architecture="qwen2")
    assert "it is for the architecture qwen2" in str(loading_error(model, path).hint)


def test_an_adapter_whose_weights_overflow_gives_an_error_and_no_output(
    model: EmbeddedModel, tmp_path: Path
) -> None:
    before = next_tokens(model)
    path = write_pair(tmp_path / "some.gguf", np.full((4, 576), 1e37, np.float32), "F32", fill=1e37)
    adapted = model.with_adapter(read_adapter(path))
    for use in (next_tokens, scores, lambda some: some.sample(FRUITS, [()], SAMPLING, Usage())):
        with pytest.raises(ModelError, match="logits that are not finite"):
            use(adapted)
    assert next_tokens(model) == before


def write_pair(
    path: Path,
    weights: NDArray[np.float32],
    kind: str,
    *,
    base: str = "blk.0.attn_q.weight",
    name: str | None = None,
    shape: tuple[int, int] | None = None,
    architecture: str = "llama",
    fill: float = 2**-4,
) -> Path:
    """Write an adapter with one pair of matrices of a type; `name` and `shape` are of its second matrix."""
    writer = gguf.GGUFWriter(str(path), architecture)
    writer.add_type("adapter")
    writer.add_string("adapter.type", "lora")
    other = np.full(shape or (576, len(weights)), fill, np.float32)
    for tensor, values in ((f"{base}.lora_a", weights), (name or f"{base}.lora_b", other)):
        if kind == "I8":
            writer.add_tensor(tensor, values.astype(np.int8))
        elif kind in ("F32", "F16"):
            writer.add_tensor(tensor, values.astype(np.float16 if kind == "F16" else np.float32))
        else:
            type_ = gguf.GGMLQuantizationType[kind]
            writer.add_tensor(tensor, gguf.quants.quantize(values, type_), raw_dtype=type_)
    close(writer)
    return path


def overwrite(path: Path, at: int, data: bytes) -> None:
    """Replace bytes of a file."""
    with path.open("r+b") as file:
        file.seek(at)
        file.write(data)


def test_a_model_is_not_an_adapter(model: EmbeddedModel) -> None:
    with pytest.raises(CorruptModel, match="but not a LoRA adapter") as caught:
        read_adapter(model.path)
    assert str(model.path) in caught.value.message
    assert "--model gguf:PATH" in str(caught.value.hint)


@pytest.mark.parametrize("kind", ["", "control_vector"])
def test_another_kind_of_adapter_is_rejected(tmp_path: Path, kind: str) -> None:
    writer = gguf.GGUFWriter(str(tmp_path / "other.gguf"), "llama")
    writer.add_type("adapter")
    writer.add_string("adapter.type", kind)
    close(writer)
    with pytest.raises(CorruptModel, match="but not a LoRA adapter"):
        read_adapter(tmp_path / "other.gguf")


def test_a_missing_file_is_unavailable(tmp_path: Path) -> None:
    with pytest.raises(ModelUnavailable, match=r"nowhere\.gguf cannot be read"):
        read_adapter(tmp_path / "nowhere.gguf")


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("{", "all of it"),
        ("[]", "all of it"),
        ("null", "all of it"),
        (provenance().model_dump_json(exclude={"prompt"}), "prompt"),
        (provenance().model_dump_json().replace('"epochs":3', '"epochs":"three"'), "epochs"),
        (provenance().model_dump_json().replace('"rank":2', '"rank":{}'), "config.rank.float"),
    ],
)
def test_the_error_for_an_invalid_provenance_names_the_field(tmp_path: Path, text: str, wrong: str) -> None:
    path = write_adapter(tmp_path / "odd.gguf", provenance=text)
    with pytest.raises(CorruptModel) as caught:
        read_adapter(path)
    assert caught.value.message == f"the provenance in {path} cannot be read ({wrong})"
    assert "tune the domain again" in str(caught.value.hint)


def test_a_provenance_is_read_as_written_and_unknown_fields_are_ignored(tmp_path: Path) -> None:
    written = provenance(domain="Küche 🍐", config={"rank": 2, "rate": 0.5})
    extended = written.model_dump_json().replace("{", '{"mood": "fine", ', 1)
    for stored in (written, extended):
        assert read_adapter(write_adapter(tmp_path / "mine.gguf", provenance=stored)).provenance == written


def test_an_adapter_of_another_tool_has_no_provenance_and_does_not_change_the_prompt(
    model: EmbeddedModel, tmp_path: Path
) -> None:
    path = write_adapter(tmp_path / "other_tool.gguf")
    assert read_adapter(path).provenance is None
    default = Parser.from_domain("starter", model, retriever="bm25", adapter="none")
    parser = Parser.from_domain("starter", model, retriever="bm25", adapter=path)
    assert parser.model.name == f"{model.name} + other_tool.gguf"
    assert parser.prompt("lamp on") == default.prompt("lamp on")
    assert len(parser.prompt("lamp on")[0]) == 8


def test_a_tuned_adapter_is_used_with_its_prompt_and_without_examples(
    model: EmbeddedModel, tmp_path: Path
) -> None:
    folder = copy_starter(tmp_path / "home")
    path = write_adapter(folder / "adapter-program.gguf", provenance=provenance(model.sha256))
    parser = Parser.from_domain(folder, model, adapter=path, decoder="greedy")
    parse = parser.parse("turn on the lamp in the hall")
    assert [message.content for message in parse.prompt.messages] == ["turn on the lamp in the hall"]
    assert (parse.examples, parse.examples_dropped) == ((), 0)
    assert parse.model == f"{model.name} + adapter-program.gguf"
    assert parse.program is not None


def test_other_models_take_no_adapter() -> None:
    toy = ToyModel()
    with pytest.raises(UsageError, match="toy does not support adapters") as caught:
        with_adapter(toy, Adapter(Path("some.gguf"), "0" * 64, None))
    assert caught.value.hint == "Adapters are for embedded[:NAME] and gguf:PATH; omit --adapter."
    assert with_adapter(toy, None) is toy


def test_a_model_with_an_adapter_takes_no_other(under: Make) -> None:
    with pytest.raises(UsageError, match=r"some\.gguf does not support adapters"):
        with_adapter(under(), Adapter(Path("other.gguf"), "0" * 64, None))
