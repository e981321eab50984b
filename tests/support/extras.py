"""Skip tests whose optional dependencies are not installed, or whose models are not stored."""

import pytest

from fewparse.lm.catalogue import Weights
from fewparse.lm.weights import is_stored


def need_torch() -> None:
    """Skip the test unless torch, transformers and accelerate are installed."""
    for needed in ("torch", "transformers", "accelerate"):
        pytest.importorskip(needed, reason=f"{needed} is not installed: make install-tune")


def need_stored(weights: Weights) -> None:
    """Skip the test unless a model of the catalogue is stored; tests do not download it."""
    if not is_stored(weights):
        pytest.skip(f"{weights.name} is not stored: {weights.pull_command()}")


def need_ray() -> None:
    """Skip the test unless Ray is installed."""
    pytest.importorskip("ray", reason="Ray is not installed: make install-ray")
