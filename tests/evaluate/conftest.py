"""The domain of most tests of evaluation."""

from pathlib import Path

import pytest

from fewparse import Domain
from support.lamp_domain import make_lamps


@pytest.fixture
def lamps(tmp_path: Path) -> Domain:
    return make_lamps(tmp_path / "lamps")
