"""Hyperparameters: defaults, ranges and the number of held-out examples."""

import json
import re
from dataclasses import fields
from itertools import combinations
from typing import Any

import pytest

from fewparse.errors import UnknownName, UsageError
from fewparse.tune.config import LAYERS, TuneConfig

INVALID: dict[str, list[Any]] = {
    "rank": [0, 257],
    "scale": [0.0, 101.0, float("nan")],
    "learning_rate": [0.0, 1.1, float("nan")],
    "batch_size": [0, 1025],
    "epochs": [0, 1001],
    "patience": [0],
    "held_out": [-0.1, 0.6],
    "seed": [-1],
    "warmup": [-0.1, 1.1],
    "final_learning_rate": [-0.1, 1.1],
    "beta1": [-0.1, 1.0],
    "beta2": [-0.1, 1.0],
    "weight_decay": [-0.1, 1.1, float("nan")],
    "max_grad_norm": [0.0, float("nan")],
    "augmented": [-0.1, 1.1],
    "layers": [()],
}


def test_the_defaults_are_valid_and_serializable() -> None:
    config = TuneConfig()
    config.check()
    assert set(config.as_dict()) == {field.name for field in fields(TuneConfig)}
    assert json.loads(json.dumps(config.as_dict())) == config.as_dict()


def test_every_hyperparameter_has_a_range() -> None:
    assert set(INVALID) == {field.name for field in fields(TuneConfig)}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name in INVALID for value in INVALID[name]])
def test_a_value_out_of_range_is_an_error_that_names_the_hyperparameter(name: str, value: Any) -> None:
    with pytest.raises(UsageError, match=f"^{name} is {re.escape(repr(value))}, but must be "):
        TuneConfig(**{name: value}).check()


def test_an_unknown_layer_is_an_error_with_a_suggestion() -> None:
    with pytest.raises(UnknownName, match=r"unknown layer 'attn_out'\n  Did you mean attn_output"):
        TuneConfig(layers=("attn_q", "attn_out")).check()


def test_any_subset_of_the_layers_is_valid() -> None:
    subsets = [layers for size in range(1, len(LAYERS) + 1) for layers in combinations(LAYERS, size)]
    assert len(subsets) == 2 ** len(LAYERS) - 1
    for layers in subsets:
        TuneConfig(layers=layers).check()


@pytest.mark.parametrize(("examples", "expected"), [(10, 5), (50, 5), (100, 10), (500, 50), (5000, 50)])
def test_a_tenth_of_the_examples_is_held_out_within_limits(examples: int, expected: int) -> None:
    assert TuneConfig().held_out_count(examples) == expected
    assert TuneConfig(held_out=0.0).held_out_count(examples) == 0
