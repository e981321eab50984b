"""Adapters: each is the same model under other weights, one cache serves all, and what fits not is refused."""

import shutil
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import combinations
from pathlib import Path
from threading import Barrier
from typing import Any

import gguf
import pytest

from fewparse.domains.load import bundled_domains
from fewparse.errors import CorruptModel, FewparseError, ModelError, ModelUnavailable, UsageError
from fewparse.lm.adapter import Adapter, read_adapter
from fewparse.lm.embedded import EmbeddedModel
from fewparse.lm.llama import Llama
from fewparse.lm.load import adapted
from fewparse.lm.local import LocalModel
from fewparse.lm.model import Completion, NextTokens, Sampling
from fewparse.lm.usage import Usage
from fewparse.parser import Parser
from fewparse.prompt import Part, Prompt
from support.adapters import BLOCKS, SHAPES, close, provenance, write_adapter
from support.toy_model import ToyModel

STOP = b"\n"
NOISE = 1e-3
BATCH_NOISE = 1.0  # nats that the shape of a batch may cost a quantised model
PATIENCE = 300
FRUITS = Prompt((Part("Fruits: apple, pear,", False),))
NUMBERS = Prompt((Part("One, two, three,", False),))
SAMPLING = Sampling(n=2, temperature=1.0, max_tokens=5, seed=3)

Make = Callable[..., LocalModel]


@pytest.fixture
def under(model: EmbeddedModel, tmp_path: Path) -> Make:
    """The model under an adapter of the test's own."""

    def make(name: str = "some.gguf", **chosen: Any) -> LocalModel:
        return model.adapted(read_adapter(write_adapter(tmp_path / name, **chosen)))

    return make


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The adapters that the native library has been given."""
    paths: list[Path] = []
    load = Llama.load_adapter

    def spy(llama: Llama, path: Path) -> int:
        paths.append(path)
        return load(llama, path)

    monkeypatch.setattr(Llama, "load_adapter", spy)
    return paths


def thought(model: LocalModel, prompt: Prompt = FRUITS, said: str = "") -> NextTokens:
    return model.next_tokens(prompt, [model.tokenize(said)], 5, STOP, Usage())[0]


def scores(model: LocalModel) -> tuple[float, ...]:
    return model.score(FRUITS, [()], [model.tokenize(" banana, or a plum")], Usage())[0]


def complaint(model: EmbeddedModel, path: Path) -> FewparseError:
    before = thought(model)
    with pytest.raises(FewparseError) as caught:
        model.adapted(read_adapter(path))
    assert thought(model) == before, "the model is none the worse"
    return caught.value


def test_an_adapter_of_no_strength_changes_nothing(model: EmbeddedModel, under: Make) -> None:
    assert scores(under(strength=0)) == pytest.approx(scores(model), abs=NOISE)


def test_a_stronger_adapter_changes_more(model: EmbeddedModel, under: Make) -> None:
    def change(strength: float) -> float:
        other = under(f"{strength}.gguf", strength=strength)
        return sum(abs(a - b) for a, b in zip(scores(other), scores(model), strict=True))

    weak, strong = change(0.01), change(0.1)
    assert weak > NOISE
    assert strong > 5 * weak


def test_every_matrix_of_the_model_can_be_corrected_at_once(model: EmbeddedModel, under: Make) -> None:
    everywhere = under(strength=0.005, blocks=range(BLOCKS), matrices=SHAPES)
    assert abs(thought(everywhere).end_logprob - thought(model).end_logprob) > NOISE
    assert thought(everywhere).best[0].logprob > -5


def test_one_cache_serves_the_model_and_its_adapters_in_any_order(model: EmbeddedModel, under: Make) -> None:
    voices = {"base": model, "a": under("a.gguf", seed=1), "b": under("b.gguf", seed=2)}

    def ask(who: str) -> list[NextTokens]:
        return [thought(voices[who]), thought(voices[who], said=" banana")]

    alone = {}
    for who, voice in voices.items():
        thought(voice, NUMBERS)
        alone[who] = ask(who)
    assert len({answers[0].end_logprob for answers in alone.values()}) == 3
    for who in ("base", "a", "b", "base", "b", "a", "a", "base"):
        assert ask(who) == alone[who]


def test_what_was_said_under_another_adapter_is_evaluated_anew_and_what_was_under_the_same_is_not(
    model: EmbeddedModel, under: Make
) -> None:
    some, other = under("a.gguf", seed=1), under("b.gguf", seed=2)
    for voice, evaluated in ((some, True), (some, False), (other, True), (model, True), (some, True)):
        usage = Usage()
        voice.next_tokens(FRUITS, [()], 1, STOP, usage)
        assert usage.prefill_tokens == evaluated * model.prompt_length(FRUITS)


def test_scores_and_samples_are_those_of_the_adapter_too(model: EmbeddedModel, under: Make) -> None:
    some = under()
    alone = scores(some), some.sample(FRUITS, [()], SAMPLING, Usage())
    between = scores(model), model.sample(FRUITS, [()], SAMPLING, Usage())
    assert alone[0] != pytest.approx(between[0], abs=NOISE)
    assert alone[1] != between[1]
    assert (scores(some), some.sample(FRUITS, [()], SAMPLING, Usage())) == alone


def test_the_same_file_is_loaded_once_wherever_it_lies(under: Make, loaded: list[Path]) -> None:
    first, again = under("first.gguf", seed=7), under("first.gguf", seed=7)
    copy = under("copy.gguf", seed=7)
    assert [path.name for path in loaded] == ["first.gguf"]
    assert thought(first) == thought(again) == thought(copy)
    under("other.gguf", seed=8)
    assert [path.name for path in loaded] == ["first.gguf", "other.gguf"]


def test_a_file_that_was_tuned_anew_is_loaded_anew(under: Make, loaded: list[Path]) -> None:
    before = thought(under("tuned.gguf", seed=17))
    assert thought(under("tuned.gguf", seed=18)) != before
    assert len(loaded) == 2


def test_an_adapted_model_says_so_and_is_otherwise_the_same(model: EmbeddedModel, under: Make) -> None:
    some = under("mine.gguf")
    assert some.name == f"{model.name} + mine.gguf"
    assert some.vocabulary is model.vocabulary
    assert some.context_length == model.context_length
    assert some.tokenize(" banana") == model.tokenize(" banana")


def test_giving_back_an_adapted_model_leaves_the_others(model: EmbeddedModel, under: Make) -> None:
    some = under()
    before = thought(model), thought(some)
    some.close()
    assert (thought(model), thought(some)) == before


def max_concurrency(
    voices: Sequence[LocalModel], work: Callable[[LocalModel, Callable[[], Any]], Any]
) -> list[Any]:
    """What each voice gives where all work in threads of their own, and wait for each other when they say so."""
    together = Barrier(len(voices), timeout=PATIENCE)
    with ThreadPoolExecutor(len(voices)) as pool:
        return list(pool.map(lambda voice: work(voice, together.wait), voices))


def test_samples_under_several_adapters_at_once_are_those_of_each_alone(model: EmbeddedModel, under: Make) -> None:
    def sample(voice: LocalModel, wait: Callable[[], Any] = lambda: None) -> list[list[list[Completion]]]:
        samples = []
        for prompt in (FRUITS, NUMBERS, FRUITS):
            wait()
            samples.append(voice.sample(prompt, [()], SAMPLING, Usage()))
        return samples

    voices = [model, under("a.gguf", seed=1), under("b.gguf", seed=2)]
    alone = [sample(voice) for voice in voices]
    assert alone[0] != alone[1] != alone[2] != alone[0]
    assert max_concurrency(voices, sample) == alone


def test_searches_that_take_turns_at_every_token_go_on_where_each_of_them_was(
    model: EmbeddedModel, under: Make
) -> None:
    tokens = model.tokenize(" banana, plum, fig")

    def walk(voice: LocalModel, wait: Callable[[], Any] = lambda: None) -> list[float]:
        steps: list[float] = []
        for i in range(len(tokens)):
            wait()
            steps += voice.score(FRUITS, [tokens[:i]], [tokens[i : i + 1]], Usage())[0]
        return steps

    voices = [model, under("a.gguf", seed=1, strength=0.1), under("b.gguf", seed=2, strength=0.2)]
    alone = [walk(voice) for voice in voices]
    for some, other in combinations(alone, 2):
        assert max(abs(a - b) for a, b in zip(some, other, strict=True)) > 2 * BATCH_NOISE
    for found, expected in zip(max_concurrency(voices, walk), alone, strict=True):
        assert found == pytest.approx(expected, abs=BATCH_NOISE)


def test_an_adapter_that_was_tuned_for_other_weights_is_refused_before_it_is_loaded(
    model: EmbeddedModel, tmp_path: Path, loaded: list[Path]
) -> None:
    path = write_adapter(tmp_path / "foreign.gguf", said=provenance("0" * 64, base="embedded:another"))
    error = complaint(model, path)
    assert isinstance(error, ModelError)
    assert error.message == (
        f"the adapter {path} was tuned for embedded:another, and {model.name} has other weights"
    )
    assert "--adapter none" in str(error.hint)
    assert not loaded


def test_an_adapter_that_was_tuned_for_these_weights_is_taken(model: EmbeddedModel, under: Make) -> None:
    assert thought(under(said=provenance(model.sha256))) != thought(model)


@pytest.mark.parametrize("wrong", [{"too_wide": 32}, {"blocks": [BLOCKS]}])
def test_an_adapter_that_does_not_fit_is_refused(
    model: EmbeddedModel, tmp_path: Path, wrong: dict[str, Any]
) -> None:
    path = write_adapter(tmp_path / "unfit.gguf", **wrong)
    error = complaint(model, path)
    assert isinstance(error, CorruptModel)
    assert error.message == f"{path} is no adapter for this model, or damaged"
    assert error.hint


@pytest.mark.parametrize("left", [0.999, 0.5, 0.1])
def test_an_adapter_that_lost_its_end_is_refused(model: EmbeddedModel, tmp_path: Path, left: float) -> None:
    path = write_adapter(tmp_path / "short.gguf")
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * left)])
    error = complaint(model, path)
    assert isinstance(error, CorruptModel)
    assert str(path) in error.message


def test_damage_in_the_list_of_matrices_is_refused_and_never_a_crash(model: EmbeddedModel, tmp_path: Path) -> None:
    path = write_adapter(tmp_path / "damaged.gguf", blocks=[0], matrices=["attn_v"])
    content = path.read_bytes()
    begin = content.index(b"blk.0")
    for at in range(begin, begin + 48):  # the name of a matrix, its shape, its type
        damaged = bytearray(content)
        damaged[at] ^= 1 << at % 8
        path.write_bytes(damaged)
        with pytest.raises(CorruptModel):
            model.adapted(read_adapter(path))
    assert thought(model).best


def test_a_model_is_no_adapter(model: EmbeddedModel) -> None:
    with pytest.raises(CorruptModel, match="but no low-rank adapter") as caught:
        read_adapter(model.path)
    assert str(model.path) in caught.value.message
    assert "--model gguf:PATH" in str(caught.value.hint)


@pytest.mark.parametrize("kind", ["", "control_vector"])
def test_another_kind_of_adapter_is_none(tmp_path: Path, kind: str) -> None:
    writer = gguf.GGUFWriter(str(tmp_path / "other.gguf"), "llama")
    writer.add_type("adapter")
    writer.add_string("adapter.type", kind)
    close(writer)
    with pytest.raises(CorruptModel, match="but no low-rank adapter"):
        read_adapter(tmp_path / "other.gguf")


def test_a_file_that_is_not_there_is_unavailable(tmp_path: Path) -> None:
    with pytest.raises(ModelUnavailable, match=r"nowhere\.gguf cannot be read"):
        read_adapter(tmp_path / "nowhere.gguf")


@pytest.mark.parametrize(
    ("said", "wrong"),
    [
        ("{", "all of it"),
        ("[]", "all of it"),
        ("null", "all of it"),
        (provenance().model_dump_json(exclude={"prompt"}), "prompt"),
        (provenance().model_dump_json().replace('"epochs":3', '"epochs":"three"'), "epochs"),
        (provenance().model_dump_json().replace('"rank":2', '"rank":{}'), "config.rank.float"),
    ],
)
def test_a_provenance_that_cannot_be_read_is_told_with_what_is_wrong(
    tmp_path: Path, said: str, wrong: str
) -> None:
    path = write_adapter(tmp_path / "odd.gguf", said=said)
    with pytest.raises(CorruptModel) as caught:
        read_adapter(path)
    assert caught.value.message == f"the provenance in {path} cannot be read ({wrong})"
    assert "tune the domain again" in str(caught.value.hint)


def test_a_provenance_is_read_as_it_was_written_and_what_a_later_version_adds_is_let_pass(tmp_path: Path) -> None:
    told = provenance(domain="Küche 🍐", config={"rank": 2, "rate": 0.5})
    later = told.model_dump_json().replace("{", '{"mood": "fine", ', 1)
    for said in (told, later):
        assert read_adapter(write_adapter(tmp_path / "mine.gguf", said=said)).provenance == told


def test_somebody_elses_adapter_has_no_provenance_and_leaves_the_prompt_to_the_domain(
    model: EmbeddedModel, tmp_path: Path
) -> None:
    path = write_adapter(tmp_path / "theirs.gguf")
    assert read_adapter(path).provenance is None
    usual = Parser.from_domain("starter", model, retriever="bm25")
    parser = Parser.from_domain("starter", model, retriever="bm25", adapter=path)
    assert parser.model.name == f"{model.name} + theirs.gguf"
    assert parser.prompt("lamp on") == usual.prompt("lamp on")
    assert len(parser.prompt("lamp on")[0]) == 8


def test_a_domains_adapter_is_asked_as_it_was_tuned_and_needs_no_examples(
    model: EmbeddedModel, tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(bundled_domains()["starter"], tmp_path / "home"))
    path = write_adapter(folder / "adapter-program.gguf", said=provenance(model.sha256))
    parser = Parser.from_domain(folder, model, adapter=path, decoder="greedy")
    parse = parser.parse("turn on the lamp in the hall")
    assert [message.content for message in parse.prompt.messages] == ["turn on the lamp in the hall"]
    assert (parse.examples, parse.examples_dropped) == ((), 0)
    assert parse.model == f"{model.name} + adapter-program.gguf"
    assert parse.program is not None


def test_a_model_that_is_not_embedded_takes_no_adapter() -> None:
    toy = ToyModel()
    with pytest.raises(UsageError, match="toy takes no adapter") as caught:
        adapted(toy, Adapter(Path("some.gguf"), "0" * 64, None))
    assert "--adapter" in str(caught.value.hint)
    assert adapted(toy, None) is toy


def test_a_model_under_an_adapter_takes_no_other(under: Make) -> None:
    with pytest.raises(UsageError, match=r"some\.gguf takes no adapter"):
        adapted(under(), Adapter(Path("other.gguf"), "0" * 64, None))
