"""What only tests of an extra need; where it is not installed, they are skipped and say so."""

import pytest


def need_torch() -> None:
    """Skip what torch, and what comes with it, is needed for."""
    for needed in ("torch", "transformers", "accelerate"):
        pytest.importorskip(needed, reason=f"{needed} is not installed: make install-tune")
