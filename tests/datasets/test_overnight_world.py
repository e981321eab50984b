"""Worlds: bundled facts, look-ups and signature checks."""

import json
from pathlib import Path

import pytest

from fewparse.datasets.overnight.values import TRUE, Date, Entity, Number
from fewparse.datasets.overnight.world import WORLDS, Fact, load_world
from fewparse.errors import ExecutionError, UnknownName
from support.data import OVERNIGHT
from support.overnight_small import SMALL_WORLD

SHARED = OVERNIGHT
ANN, BOB, DEE = (Entity(f"en.person.{name}") for name in ("ann", "bob", "dee"))


@pytest.mark.parametrize("name", WORLDS)
def test_a_bundled_world_equals_the_dump_from_sempre(name: str) -> None:
    expected = SHARED / f"{name}.world.json"
    if not expected.exists():
        pytest.skip("the Overnight dataset was not found: set FEWPARSE_DATA")
    bundled = Path(__file__).parents[2] / "src/fewparse/datasets/overnight/worlds" / f"{name}.json"
    ours, theirs = (json.loads(path.read_text(encoding="utf-8")) for path in (bundled, expected))
    assert json.dumps(ours) == json.dumps(theirs)


@pytest.mark.parametrize("name", WORLDS)
def test_a_bundled_world_is_loaded_once_and_each_type_has_its_entities(name: str) -> None:
    world = load_world(name)
    assert world is load_world(name)
    kinds = {fact.value for fact in world.facts if fact.property == "type"}
    assert kinds
    for kind in kinds:
        entities = world.look_up(kind, "!type")
        assert entities == tuple(f.entity for f in world.facts if (f.property, f.value) == ("type", kind))


def test_an_unknown_world_is_reported_with_a_suggestion() -> None:
    with pytest.raises(UnknownName, match="Did you mean blocks"):
        load_world("bloks")


def test_facts_are_in_the_order_of_the_file() -> None:
    assert SMALL_WORLD.facts[0] == Fact(Entity("en.city.rome"), "type", Entity("en.city"))
    assert SMALL_WORLD.facts[-1] == Fact(DEE, "friend", DEE)


def test_repeated_values_are_kept_in_both_directions() -> None:
    assert SMALL_WORLD.look_up(ANN, "friend") == (BOB, BOB, Entity("en.person.cy"))
    assert SMALL_WORLD.look_up(BOB, "!friend") == (ANN, ANN)


def test_every_value_of_a_fact_is_known_and_has_reverse_properties() -> None:
    assert SMALL_WORLD.look_up(Number(30.0, "en.year"), "!age") == (ANN, BOB)
    assert SMALL_WORLD.look_up(TRUE, "!vip") == (ANN, Entity("en.person.cy"))
    assert SMALL_WORLD.look_up(Date(2004, -1, -1), "!born") == (ANN,)
    assert SMALL_WORLD.look_up(Date(2004, -1, -1), "!age") == ()


def test_a_known_entity_may_have_no_values_and_an_unknown_one_is_an_error() -> None:
    assert SMALL_WORLD.look_up(DEE, "age") == ()
    with pytest.raises(ExecutionError, match=r"en\.person\.nobody does not exist"):
        SMALL_WORLD.look_up(Entity("en.person.nobody"), "age")


@pytest.mark.parametrize("name", ["nonsense", "!nonsense", "!!age", "", "unused"])
def test_a_property_without_facts_is_unknown(name: str) -> None:
    with pytest.raises(ExecutionError, match="unknown property"):
        SMALL_WORLD.look_up(ANN, name)


def test_the_signature_of_a_reverse_property_is_swapped() -> None:
    assert SMALL_WORLD.signature("city") == ("en.person", "en.city")
    assert SMALL_WORLD.signature("!city") == ("en.city", "en.person")


def test_checks_compare_the_type_of_a_value_with_the_signature() -> None:
    SMALL_WORLD.check_first("city", Entity("en.person.nobody"))
    SMALL_WORLD.check_second("city", Entity("en.city.atlantis"))
    with pytest.raises(ExecutionError, match=r"en\.city\.rome has no property `age`"):
        SMALL_WORLD.check_first("age", Entity("en.city.rome"))
    with pytest.raises(ExecutionError, match=r"\(number 3 en\.cm\) is not a value of the property `age`"):
        SMALL_WORLD.check_second("age", Number(3.0, "en.cm"))
    with pytest.raises(ExecutionError, match="unknown property"):
        SMALL_WORLD.check_first("nonsense", ANN)
