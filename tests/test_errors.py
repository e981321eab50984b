"""Errors as values: they can be sent between processes."""

import pickle
from pathlib import Path

import pytest

from fewparse.errors import (
    ContextOverflow,
    FewparseError,
    GrammarError,
    ModelError,
    ParseCancelled,
    UnknownName,
    UsageError,
)


@pytest.mark.parametrize(
    "error",
    [
        UsageError("a message"),
        ModelError("a message", "a hint"),
        UnknownName("model", "embeded", ["embedded"]),
        GrammarError("a message", Path("rules.lark"), 2, 1, "a: b\nb: c", hint="a hint"),
        ContextOverflow(10, 5),
        ParseCancelled(),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_can_be_pickled(error: FewparseError) -> None:
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert str(copy) == str(error)
    assert vars(copy) == vars(error)
