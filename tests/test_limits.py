"""Limits: defaults, overrides by the environment, and their table in the documents."""

from pathlib import Path

import pytest

from fewparse.errors import UsageError
from fewparse.limits import FILE_BYTES, LIMITS, Limit

SECURITY = Path(__file__).parents[1] / "docs" / "security.md"


def test_a_variable_of_the_environment_overrides_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    assert FILE_BYTES.value == FILE_BYTES.default
    monkeypatch.setenv(FILE_BYTES.variable, " 2e3 ")
    assert FILE_BYTES.value == 2000


@pytest.mark.parametrize("text", ["many", "0", "-1", "nan", "inf", "1_000 bytes"])
def test_a_limit_that_is_not_a_positive_number_is_an_error(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(FILE_BYTES.variable, text)
    with pytest.raises(UsageError, match=r"FEWPARSE_MAX_FILE_BYTES is .* not a positive number of bytes"):
        _ = FILE_BYTES.value


@pytest.mark.parametrize("limit", LIMITS, ids=lambda limit: limit.variable)
def test_the_documents_have_each_limit_with_its_default(limit: Limit) -> None:
    row = f"| `{limit.variable}` | {limit.default:,} {limit.unit} | {limit.purpose} |"
    assert row in SECURITY.read_text(encoding="utf-8")
