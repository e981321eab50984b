"""The similarities by a language model are computed once, and stored for every later process."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from fewparse import Parser, prepare_similarity
from fewparse.errors import ModelUnavailable, UnknownName, UsageError
from fewparse.evaluate.run import parser_systems
from fewparse.lm.adapter import read_adapter
from fewparse.lm.embedded import EmbeddedModel
from fewparse.lm.http.load import RemoteSettings
from fewparse.lm.load import NamedModel, model_identity
from fewparse.lm.usage import Usage
from fewparse.retrieve.lm import UTTERANCES_PER_BLOCK, LmRetriever
from fewparse.retrieve.retriever import Pool
from fewparse.retrieve.similarity_store import SimilarityStore, similarity_path
from support.adapters import write_adapter
from support.cli_runner import fewparse
from support.lamp_domain import make_lamps
from support.tiny_model import write_tiny_model
from support.toy_model import ToyModel

POOL = ["turn on the lamp", "is the radio on", "close the blinds at night", "what time is it in Oslo"]
UTTERANCES = ["turn off the lamp", "turn off the radio", "is the lamp on"]
NOISE = 1.0


@pytest.fixture(autouse=True)
def _own_cache(isolated_cache: Path) -> None:
    """Similarities are stored in the folder of the test."""


@pytest.fixture(scope="module")
def tiny_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a model with other weights, which is opened quickly."""
    return write_tiny_model(tmp_path_factory.mktemp("models") / "tiny.gguf")


def scores(model: EmbeddedModel, pool: list[str], utterance: str) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """The stored scores of an utterance."""
    found = SimilarityStore(model_identity(model), pool).get(utterance)
    assert found is not None
    return found


def test_an_utterance_is_scored_once_by_all_retrievers_over_the_same_pool(model: EmbeddedModel) -> None:
    first, second = Usage(), Usage()
    ranking = LmRetriever(Pool(POOL, model)).rank(UTTERANCES[0], first)
    assert LmRetriever(Pool(POOL, model)).rank(UTTERANCES[0], second) == ranking
    assert first.requests == len(POOL)
    assert second == Usage()
    again = Usage()
    LmRetriever(Pool(POOL[::-1], model)).rank(UTTERANCES[0], again)
    assert again.requests == len(POOL)


def test_stored_scores_are_exactly_those_computed(model: EmbeddedModel) -> None:
    store = SimilarityStore("some model", POOL)
    computed = np.array([-0.1, -1e-300, -np.inf, np.nextafter(-3, 0)])
    store.put("é", computed)
    found = SimilarityStore("some model", POOL).get("é")
    assert found is not None
    assert found.tobytes() == computed.tobytes()
    assert store.get("e") is None
    assert SimilarityStore("other model", POOL).get("é") is None
    assert SimilarityStore("some model", POOL[:-1]).get("é") is None


def test_preparing_gives_the_scores_of_one_by_one_and_then_needs_no_model(model: EmbeddedModel) -> None:
    LmRetriever(Pool(POOL, model)).rank(UTTERANCES[0], Usage())
    alone = scores(model, POOL, UTTERANCES[0])
    similarity_path().unlink()
    usage, progress = Usage(), list[tuple[int, int]]()
    prepare_similarity(POOL, model, UTTERANCES, usage, lambda done, total: progress.append((done, total)))
    pairs = len(POOL) * len(UTTERANCES)
    assert usage.requests == pairs
    assert progress[-1] == (pairs, pairs)
    assert scores(model, POOL, UTTERANCES[0]) == pytest.approx(alone, abs=NOISE)
    again = Usage()
    prepare_similarity(POOL, model, UTTERANCES, again)
    for utterance in UTTERANCES:
        LmRetriever(Pool(POOL, model)).rank(utterance, again)
    assert again == Usage()


def test_common_tokens_of_prepared_utterances_are_evaluated_once(model: EmbeddedModel) -> None:
    together, separately = Usage(), Usage()
    prepare_similarity(POOL, model, UTTERANCES, together)
    similarity_path().unlink()
    for utterance in UTTERANCES:
        LmRetriever(Pool(POOL, model)).rank(utterance, separately)
    assert together.forward_tokens < separately.forward_tokens / 2


def test_an_interrupted_preparation_continues_after_what_is_stored(tiny_file: Path) -> None:
    utterances = [f"lamp {i:03}" for i in range(UTTERANCES_PER_BLOCK + 5)]
    first_block = UTTERANCES_PER_BLOCK * len(POOL)

    def interrupt(done: int, total: int) -> None:
        if done > first_block:
            raise KeyboardInterrupt

    name = f"gguf:{tiny_file}"
    with pytest.raises(KeyboardInterrupt):
        prepare_similarity(POOL, name, utterances, progress=interrupt)
    usage = Usage()
    prepare_similarity(POOL, name, utterances, usage)
    assert usage.requests == 5 * len(POOL)


def test_a_damaged_store_is_replaced_with_a_warning(tiny_file: Path) -> None:
    path = similarity_path()
    path.write_bytes(b"no database")
    retriever = LmRetriever(Pool(POOL, NamedModel(f"gguf:{tiny_file}")))
    with pytest.warns(UserWarning, match=f"the similarity cache {path} is damaged"):
        ranking = retriever.rank(UTTERANCES[0], Usage())
    usage = Usage()
    assert retriever.rank(UTTERANCES[0], usage) == ranking
    assert usage == Usage()


def test_a_store_that_cannot_be_written_does_not_prevent_ranking(
    model: EmbeddedModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "file"
    file.touch()
    monkeypatch.setenv("FEWPARSE_CACHE", str(file))
    with pytest.warns(UserWarning, match="cannot be used"):
        ranking = LmRetriever(Pool(POOL, model)).rank(UTTERANCES[0], Usage())
    assert sorted(ranking) == list(range(len(POOL)))


def test_two_processes_store_at_the_same_time(tiny_file: Path) -> None:
    program = (
        "import sys; from fewparse import prepare_similarity; "
        "prepare_similarity(['a b', 'c d'], sys.argv[1], [f'{sys.argv[2]} {i}' for i in range(70)])"
    )
    name = f"gguf:{tiny_file}"
    running = [subprocess.Popen([sys.executable, "-c", program, name, word]) for word in ("lamp", "radio")]
    assert [process.wait() for process in running] == [0, 0]
    usage = Usage()
    prepare_similarity(["a b", "c d"], name, [f"{w} {i}" for w in ("lamp", "radio") for i in range(70)], usage)
    assert usage == Usage()


def test_the_identity_of_a_model_is_known_without_opening_it(
    model: EmbeddedModel, tiny_file: Path, tmp_path: Path
) -> None:
    assert NamedModel("embedded").identity == model_identity(model) == f"gguf:{model.sha256}"
    tiny = NamedModel(f"gguf:{tiny_file}")
    assert tiny.identity == model_identity(tiny.open()) != model_identity(model)
    tiny.close()
    remote = RemoteSettings(base_url="http://user:secret@127.0.0.1:9/v1/")
    assert NamedModel("openai:some", remote=remote).identity == "openai:some@http://127.0.0.1:9/v1"
    assert NamedModel("openai:", remote=remote).identity is None
    with pytest.raises(ModelUnavailable):
        NamedModel(f"gguf:{tmp_path}/missing.gguf").identity  # noqa: B018
    with pytest.raises(UnknownName, match="unknown model 'embeded'"):
        NamedModel("embeded")


def test_an_adapter_has_similarities_of_its_own(model: EmbeddedModel, tmp_path: Path) -> None:
    adapter = read_adapter(write_adapter(tmp_path / "some.gguf"))
    assert model_identity(model.with_adapter(adapter)) == f"{model_identity(model)}+{adapter.sha256}"


def test_similarities_of_a_model_without_identity_are_not_stored() -> None:
    LmRetriever(Pool(POOL[:2], ToyModel())).rank("lamp", Usage())
    assert not similarity_path().exists()
    with pytest.raises(UsageError, match="similarities by toy cannot be stored"):
        prepare_similarity(POOL[:2], ToyModel(), ["lamp"])


class FixedRanking:
    """A retriever that returns a given ranking."""

    def __init__(self, ranking: list[int]) -> None:
        self._ranking = ranking

    def rank(self, utterance: str, usage: Usage) -> list[int]:
        return self._ranking


def test_another_model_for_retrieval_changes_only_the_ranking(
    model: EmbeddedModel, tiny_file: Path, tmp_path: Path
) -> None:
    domain, name = make_lamps(tmp_path / "lamps"), f"gguf:{tiny_file}"
    pool = [example.utterance for example in domain.examples]
    parse = Parser.from_domain(domain, model, retriever="lm", retriever_model=name).parse(UTTERANCES[0])
    expected = LmRetriever(Pool(pool, NamedModel(name))).rank(UTTERANCES[0], Usage())
    same = Parser.from_domain(domain, model, retriever=FixedRanking(expected)).parse(UTTERANCES[0])
    assert (parse.prompt, parse.candidates, parse.trace) == (same.prompt, same.candidates, same.trace)
    assert parse.model == model.name
    assert parse.usage.requests == same.usage.requests + len(pool)


def test_after_preparation_the_retriever_model_is_never_opened(
    model: EmbeddedModel, tiny_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"gguf:{tiny_file}"
    parser = Parser.from_domain(make_lamps(tmp_path / "lamps"), model, retriever="lm", retriever_model=name)
    prepare_similarity([example.utterance for example in parser.domain.examples], name, UTTERANCES)
    monkeypatch.setattr(NamedModel, "open", lambda self: pytest.fail("the model was opened"))
    for utterance in UTTERANCES:
        parser.prompt(utterance)


def test_records_are_of_one_retriever_model(model: EmbeddedModel, tiny_file: Path, tmp_path: Path) -> None:
    domain, name = make_lamps(tmp_path / "lamps"), f"gguf:{tiny_file}"
    (plain,) = parser_systems(domain, model, {"plain": {"retriever": "lm"}})
    (other,) = parser_systems(domain, model, {"other": {"retriever": "lm", "retriever_model": name}})
    (given,) = parser_systems(domain, model, {"given": {"retriever": "lm"}}, NamedModel(name))
    assert other.settings == given.settings == {**plain.settings, "retriever_model": name}


def test_an_evaluation_scores_an_item_once_and_counts_it(model: EmbeddedModel, tmp_path: Path) -> None:
    domain = make_lamps(tmp_path / "lamps")
    (system,) = parser_systems(domain, model, {"some": {"retriever": "lm"}})
    first, second = (system.predict(domain.test_examples[0], ()).usage for _ in range(2))
    assert first.requests == second.requests + len(domain.examples)


def test_an_unknown_retriever_model_is_reported_before_a_model_is_opened(tmp_path: Path) -> None:
    ended = fewparse("parse", "starter", "turn on the lamp", "--retriever-model", "embeded")
    assert (ended.code, ended.out) == (2, "")
    assert "error: unknown model 'embeded'" in ended.err
    assert "Did you mean embedded[:NAME]?" in ended.err
