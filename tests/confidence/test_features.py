"""Features of parses: what they say, and that unknown ones are absent."""

import math

import pytest

from fewparse.confidence.features import DESCRIPTIONS, FeatureExtractor
from fewparse.confidence.readings import readings_of
from fewparse.domains.domain import Domain
from fewparse.domains.load import load_domain
from fewparse.errors import ExecutionError
from fewparse.events import Completed, Event, Sampled, Spelled
from fewparse.example import Candidate

LAMP = Candidate("(set (lamp hall) on)", -0.1, "(set (lamp hall) on)", -0.1, -0.3, -0.2)
RADIO = Candidate("(set (radio hall) on)", -1.1, "(set (radio hall) on)", -1.1, -2.0, -1.5)
SAMPLES: tuple[Event, ...] = (Sampled(b"", (b"a", b"b"), 2, "finished"), Sampled(b"", (b"a", b"b"), 1, "cut"))


@pytest.fixture(scope="module")
def starter() -> Domain:
    return load_domain("starter")


@pytest.fixture(scope="module")
def extractor(starter: Domain) -> FeatureExtractor:
    return FeatureExtractor(starter, "program")


def answers(program: str) -> object:
    if "radio" in program:
        raise ExecutionError("there is no radio")
    return []


def test_every_feature_that_is_known_is_computed_and_described(extractor: FeatureExtractor) -> None:
    readings = readings_of([LAMP, RADIO], answers)
    found = extractor.features("turn on the lamp in the hall", [LAMP, RADIO], readings, SAMPLES)
    assert set(found) == set(DESCRIPTIONS)
    assert (found["logprob"], found["least_token"], found["score"]) == (-0.3, -0.2, -0.1)
    assert (found["alone"], found["margin"], found["cut"], found["completed"]) == (0, 1.0, 0.5, 0)
    assert found["mass"] == pytest.approx(1 / (1 + math.exp(-1)))
    assert (found["fails"], found["empty"], found["unseen"]) == (0, 1, 0)
    assert found["similarity"] > 0.5


def test_what_is_not_known_is_absent(extractor: FeatureExtractor) -> None:
    bare = Candidate(LAMP.text, -0.1, LAMP.program, -0.1)
    found = extractor.features("turn on the lamp", [bare], readings_of([bare], None), ())
    assert set(DESCRIPTIONS) - set(found) == {"logprob", "least_token", "score", "cut", "fails", "empty"}
    spelled = extractor.features("lamp on", [LAMP], readings_of([LAMP], None), [Spelled(b"", (b"a",))])
    assert "logprob" not in spelled


def test_an_utterance_unlike_the_examples_has_unseen_and_unexplained_words(extractor: FeatureExtractor) -> None:
    near, far = (
        extractor.features(utterance, [LAMP], readings_of([LAMP], None), ())
        for utterance in ("turn on the lamp in the hall", "order four pizzas for tonight")
    )
    assert far["unseen"] > near["unseen"] == 0
    assert far["worst_word"] < near["worst_word"]
    assert far["similarity"] < near["similarity"]


def test_an_example_left_out_does_not_make_itself_similar(starter: Domain, extractor: FeatureExtractor) -> None:
    example = starter.examples[0]
    candidates = [Candidate(example.program, 0.0, example.program, 0.0)]
    readings = readings_of(candidates, None)
    kept = extractor.features(example.utterance, candidates, readings, ())
    left_out = extractor.features(example.utterance, candidates, readings, (), [example])
    assert kept["similarity"] == pytest.approx(1)
    assert left_out["similarity"] < 1


def test_a_completed_output_is_marked(extractor: FeatureExtractor) -> None:
    found = extractor.features("lamp", [LAMP], readings_of([LAMP], None), [Completed(b"(", b")")])
    assert found["completed"] == 1


def test_candidates_with_one_answer_are_one_reading_and_failing_ones_are_not() -> None:
    programs = ["(lamp 1)", "(lamp 2)", "(radio 1)", "(radio 2)", "(lamp 1)"]
    candidates = [Candidate(program, -float(i), program, -float(i)) for i, program in enumerate(programs)]
    readings = readings_of(candidates, answers)
    assert [reading.candidates for reading in readings] == [(0, 1, 4), (2,), (3,)]
    assert [reading.candidates for reading in readings_of(candidates, None)] == [(0, 4), (1,), (2,), (3,)]
    assert readings[0].weight == pytest.approx(1 + math.exp(-1) + math.exp(-4))
