"""Skip tests whose optional dependencies are not installed."""

import pytest


def need_torch() -> None:
    """Skip the test unless torch, transformers and accelerate are installed."""
    for needed in ("torch", "transformers", "accelerate"):
        pytest.importorskip(needed, reason=f"{needed} is not installed: make install-tune")


def need_ray() -> None:
    """Skip the test unless Ray is installed."""
    pytest.importorskip("ray", reason="Ray is not installed: make install-ray")
