"""The reliability diagram and the risk-coverage plot, as SVG files."""

from pathlib import Path
from typing import Any

from fewparse.errors import ResultsError
from fewparse.evaluate.metrics import Proportion
from fewparse.evaluate.report import not_written

RELIABILITY, RISK_COVERAGE = "reliability.svg", "risk-coverage.svg"
INSTALL = "pip install 'fewparse[report]'"
SIZE = (4.2, 3.6)


def write_plots(folder: Path, found: dict[str, Any]) -> None:
    """Write both plots of the figures into a folder; raise `ResultsError` if that is not possible."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ResultsError(f"plots need the extra `report` ({error})", folder, hint=INSTALL) from None
    for name, draw in ((RELIABILITY, draw_reliability), (RISK_COVERAGE, draw_risk_coverage)):
        figure = Figure(figsize=SIZE, layout="constrained")
        draw(figure.subplots(), found)
        try:
            figure.savefig(folder / name, metadata={"Date": None})
        except OSError as error:
            raise not_written(folder / name, error) from None


def draw_reliability(axes: Any, found: dict[str, Any]) -> None:
    """Draw accuracy over confidence by bin, with 95% intervals, beside the diagonal of perfect calibration."""
    axes.plot([0, 1], [0, 1], color="0.7", linewidth=1, label="calibrated")
    for each in found["bins"]:
        interval = Proportion(round(each["accuracy"] * each["items"]), each["items"]).interval()
        axes.plot([each["confidence"]] * 2, interval, color="C0", linewidth=1, alpha=0.4)
    confidence = [each["confidence"] for each in found["bins"]]
    accuracy = [each["accuracy"] for each in found["bins"]]
    label = f"bins, error {found['ece']:.3f}"
    axes.plot(confidence, accuracy, linestyle="none", marker="o", markersize=4, color="C0", label=label)
    axes.set(xlabel="confidence", ylabel="accuracy", xlim=(0, 1.02), ylim=(0, 1.02))
    axes.legend(loc="upper left", frameon=False)


def draw_risk_coverage(axes: Any, found: dict[str, Any]) -> None:
    """Draw the share of wrong programs over the share of utterances that are executed."""
    coverage, risk = zip(*found["risk_coverage"], strict=True)
    axes.step(coverage, risk, where="post", label=f"area {found['area_under_risk']:.3f}")
    axes.axhline(found["max_risk"], color="0.7", linewidth=1, label=f"risk {found['max_risk']:g}")
    executed = found["decisions"]["execute"]
    if executed["accuracy"] is not None:
        point = executed["coverage"], 1 - executed["accuracy"]["value"]
        axes.plot(*point, linestyle="none", marker="o", markersize=5, color="C1", label="executed")
    axes.set(xlabel="coverage", ylabel="risk", xlim=(0, 1.02), ylim=(0, None))
    axes.legend(loc="upper left", frameon=False)
