"""The batches of a tree of spans: every needed path is evaluated once, after what it continues."""

from hypothesis import given
from hypothesis import strategies as st

from fewparse.lm.evaluator import TokenIds
from fewparse.lm.span_tree import next_ids, tree_batches

SHORT = st.lists(st.integers(0, 2), max_size=5).map(tuple)
SPANS = st.lists(st.tuples(SHORT, SHORT), max_size=12)
LIMITS = st.integers(1, 8)


@given(spans=SPANS)
def test_the_needed_tokens_are_those_that_follow(spans: list[tuple[TokenIds, TokenIds]]) -> None:
    expected = {
        (before + following[:i], following[i]) for before, following in spans for i in range(len(following))
    }
    found = [(path, token) for path, ids in next_ids(spans).items() for token in ids]
    assert len(found) == len(set(found))
    assert set(found) == expected


@given(spans=SPANS, max_tokens=LIMITS, max_rows=LIMITS, max_paths=LIMITS)
def test_a_batch_continues_the_last_path_of_the_batch_before(
    spans: list[tuple[TokenIds, TokenIds]], max_tokens: int, max_rows: int, max_paths: int
) -> None:
    needed = next_ids(spans)
    last: TokenIds = ()
    evaluated: list[TokenIds] = [()]
    for batch in tree_batches(needed, max_tokens, max_rows, max_paths):
        for path, shared in zip(batch.paths, batch.shared, strict=True):
            assert path[:shared] == last[:shared]
        for node, owners in batch.owners.items():
            assert node[:-1] in evaluated
            assert owners == [i for i, path in enumerate(batch.paths) if path[: len(node)] == node]
            assert len({batch.shared[i] for i in owners}) == 1  # llama.cpp requires sequences of equal length
            evaluated.append(node)
        if len(batch.paths) > 1:
            assert len(batch.owners) <= max_tokens
            assert len(batch.paths) <= max_paths
            assert batch.rows <= max_rows
        assert batch.rows == sum(node in needed for node in batch.owners)
        last = batch.paths[-1]
    assert len(evaluated) == len(set(evaluated))
    assert set(needed) <= set(evaluated)
    assert all(any(path[: len(node)] == node for path in needed) for node in evaluated[1:])
