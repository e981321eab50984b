"""The forest has every derivation once; counting and enumerating them needs little time and memory."""

import random
from collections.abc import Iterator
from itertools import islice
from math import comb

import pytest
from hypothesis import assume, given

from fewparse.grammar.parsing.forest import Forest, ForestParser, SymbolNode, Tree
from fewparse.grammar.rules import Chars, Grammar, Ref, Text
from support.campaign import examples
from support.enumeration import Spans, leaves, plain
from support.random_grammars import candidates, heights, plain_grammars, seeds

MAX_TREES = 3_000
BALANCED = Grammar({"start": ((Ref("start"), Ref("start")), (Text("a"),))})


def forest_of(grammar: Grammar, text: str) -> Forest | None:
    """The forest of a text; None if it does not parse."""
    forest = ForestParser(grammar).parse(text)
    return forest if isinstance(forest, Forest) else None


def parsed(grammar: Grammar, text: str) -> Forest:
    forest = forest_of(grammar, text)
    assert forest is not None
    return forest


def forests(grammar: Grammar, rng: random.Random) -> Iterator[tuple[Forest, Spans]]:
    """Forests of short texts, each with the oracle's spans."""
    assume(grammar.start in heights(grammar))
    for text in dict.fromkeys(["", *candidates(grammar, rng, count=2, max_length=5)]):
        forest = forest_of(grammar, text)
        if forest is not None:
            yield forest, Spans(grammar, text)


@given(plain_grammars(), seeds)
@examples(120)
def test_the_count_of_derivations_equals_brute_force(grammar: Grammar, rng: random.Random) -> None:
    for forest, spans in forests(grammar, rng):
        assert forest.cyclic == spans.is_cyclic
        assert forest.count() == (None if spans.is_cyclic else spans.count())


@given(plain_grammars(), seeds)
@examples(120)
def test_the_trees_are_those_of_brute_force_without_repeats(grammar: Grammar, rng: random.Random) -> None:
    for forest, spans in forests(grammar, rng):
        expected = list(islice(spans.trees(), MAX_TREES))
        assume(len(expected) < MAX_TREES)
        found = [plain(tree) for tree in islice(forest.trees(), MAX_TREES)]
        assert len(found) == len(set(found))
        assert set(found) == set(expected)
        assert all(leaves(tree) == forest.text for tree in found)


@given(plain_grammars(), seeds)
@examples(80)
def test_no_tree_has_a_node_below_itself(grammar: Grammar, rng: random.Random) -> None:
    for forest, _ in forests(grammar, rng):
        for tree in islice(forest.trees(), 100):
            assert all(len(set(path)) == len(path) for path in paths(tree, ()))


def paths(tree: Tree, above: tuple[SymbolNode, ...]) -> Iterator[tuple[SymbolNode, ...]]:
    """The nodes from the root to each tree."""
    here = (*above, tree.node)
    yield here
    for filler in tree.fillers:
        if isinstance(filler, Tree):
            yield from paths(filler, here)


@given(plain_grammars(), seeds)
@examples(80)
def test_children_come_before_parents(grammar: Grammar, rng: random.Random) -> None:
    for forest, _ in forests(grammar, rng):
        order = {node: index for index, node in enumerate(forest.nodes)}
        assert len(order) == len(forest.nodes)
        assert order[forest.root] == len(order) - 1
        for node in forest.nodes:
            assert node.packed
            assert all(
                child in order and (forest.cyclic or order[child] < order[node]) for child in node.children()
            )


def test_random_forests_include_cyclic_ones() -> None:
    cyclic = {True: 0, False: 0}

    @given(plain_grammars(), seeds)
    @examples(120)
    def count(grammar: Grammar, rng: random.Random) -> None:
        for forest, _ in forests(grammar, rng):
            cyclic[forest.cyclic] += 1

    count()
    assert min(cyclic.values()) >= 10


def test_sixty_characters_have_a_catalan_number_of_derivations_enumerated_lazily() -> None:
    forest = parsed(BALANCED, "a" * 60)
    assert forest.count() == comb(118, 59) // 60
    first = [plain(tree) for tree in islice(forest.trees(), 5)]
    assert len(set(first)) == 5
    assert {leaves(tree) for tree in first} == {"a" * 60}


def test_a_unit_cycle_has_infinitely_many_derivations_and_few_trees() -> None:
    grammar = Grammar({"start": ((Ref("other"),), (Text("x"),)), "other": ((Ref("start"),), (Text("x"),))})
    forest = parsed(grammar, "x")
    assert forest.count() is None
    assert {plain(tree)[1] for tree in forest.trees()} == {(Ref("other"),), (Text("x"),)}
    assert len(list(forest.trees())) == 2


def test_an_empty_constituent_within_itself_is_a_cycle() -> None:
    forest = parsed(Grammar({"start": ((Ref("start"), Ref("start")), ())}), "")
    assert forest.count() is None
    assert [plain(tree) for tree in forest.trees()] == [("start", (), ())]


def test_a_cycle_that_no_derivation_reaches_is_ignored() -> None:
    grammar = Grammar({"start": ((Text("a"),), (Text("b"), Ref("loop"))), "loop": ((Ref("loop"),), (Text("c"),))})
    assert parsed(grammar, "a").count() == 1
    assert parsed(grammar, "bc").count() is None


def test_characters_fill_the_slots_of_classes() -> None:
    letter = Chars.of([(ord("a"), ord("z"))])
    (tree,) = parsed(Grammar({"start": ((Text("<"), letter, letter, Text(">")),)}), "<hi>").trees()
    assert tree.fillers == ("h", "i")


def deep_leaves(tree: Tree) -> str:
    """The text of a tree of any depth."""
    found = []
    work: list[Tree | str] = [tree]
    while work:
        item = work.pop()
        if isinstance(item, str):
            found.append(item)
            continue
        pieces: list[Tree | str] = []
        for slot, filler in zip(item.shape.slots, item.fillers, strict=True):
            pieces += [slot.before, filler]
        work += [item.shape.tail, *reversed(pieces)]
    return "".join(found)


LONG = {
    "left recursion": (Grammar({"start": ((Ref("start"), Text("a")), (Text("a"),))}), "a" * 5_000),
    "left-recursive list": (
        Grammar(
            {
                "start": ((Ref("start"), Text(","), Ref("item")), (Ref("item"),)),
                "item": ((Chars.of([(97, 122)]),), (Text("("), Ref("start"), Text(")"))),
            }
        ),
        "x,(y),z" + ",(a,b)" * 800,
    ),
    "centre-embedding": (
        Grammar({"start": ((Text("("), Ref("start"), Text(")")), (Text(""),))}),
        "(" * 750 + ")" * 750,
    ),
    "right recursion": (Grammar({"start": ((Text("a"), Ref("start")), (Text("a"),))}), "a" * 600),
    "a chain of names": (
        Grammar(
            {"start": ((Ref("n0"),),)}
            | {f"n{i}": ((Ref(f"n{i + 1}"),),) for i in range(5_000)}
            | {"n5000": ((Text("x"),),)}
        ),
        "x",
    ),
}


@pytest.mark.parametrize("name", LONG)
def test_long_and_deep_texts_have_a_count_and_a_tree(name: str) -> None:
    forest = parsed(*LONG[name])
    assert forest.count() == 1
    (tree,) = forest.trees()
    assert deep_leaves(tree) == forest.text
