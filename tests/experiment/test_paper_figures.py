"""The paper's figures in the package are those of the paper's LaTeX source, row by row."""

import re

import pytest

from fewparse.experiment.paper_figures import paper_figures
from fewparse.experiment.paper_report import Line, make_report
from fewparse.experiment.paper_tables import PAPER_TABLES
from fewparse.experiment.reproduction import Reproduction
from support.data import ROOT

PAPER = ROOT.parent / "shared" / "docs" / "paper.tex"
LABELS = {
    "table2": "tab:codex-vs-gpt3",
    "table3": "tab:canon-vs-mr",
    "table4": "tab:constrained-vs-unconstrained",
    "table5": "tab:spec-settings",
    "table6": "tab:final",
    "table7": "tab:mega",
    "table8": "tab:spec-settings-full",
}


def source() -> str:
    if not PAPER.is_file():
        pytest.skip("the source of the paper is not beside the project")
    return PAPER.read_text(encoding="utf-8")


def latex_rows(label: str) -> list[list[str]]:
    """Return the cells of the rows with figures of a LaTeX table."""
    tables = re.findall(r"\\begin\{table\*?\}.*?\\end\{table\*?\}", source(), re.DOTALL)
    (table,) = (text for text in tables if f"\\label{{{label}}}" in text)
    body = [line for line in table.splitlines() if re.search(r"& *\d\.\d+\*? *\\\\$", line)]
    return [[cell.strip() for cell in line.removesuffix("\\\\").split("&")] for line in body]


def numbers(texts: list[str]) -> list[float]:
    return [float(text.removesuffix("*")) for text in texts]


def figures(line: Line) -> list[str]:
    return [figure.text if figure else "missing" for figure in line.figures]


def printed_rows(name: str) -> list[list[str]]:
    """Return the rows of the paper as they are printed: the parts of tables 5 and 8 side by side."""
    report = make_report(Reproduction(PAPER_TABLES[name], ["embedded"]), {}, "2026-01-01")
    parts = [[line for line in lines if line.paper] for _, lines in report.parts]
    if name in ("table5", "table8"):
        pairs = zip(*parts, strict=True)
        return [[*first.row.labels, *figures(first), *figures(second)] for first, second in pairs]
    shows_model = name not in ("table4", "table6")
    all_lines = [line for lines in parts for line in lines]
    return [[*([line.model] if shows_model else []), *line.row.labels, *figures(line)] for line in all_lines]


@pytest.mark.parametrize("name", sorted(set(LABELS) - {"table6"}))
def test_the_rows_of_a_table_are_those_of_the_paper(name: str) -> None:
    expected, printed = latex_rows(LABELS[name]), printed_rows(name)
    assert len(printed) == len(expected)
    for row, paper_row in zip(printed, expected, strict=True):
        labels = sum(not re.fullmatch(r"\d\.\d{2,3}", cell) for cell in row)
        assert row[:labels] == paper_row[:labels]
        assert numbers(row[labels:]) == numbers(paper_row[labels:])


def test_the_figures_of_table_6_are_those_of_the_paper() -> None:
    expected = [row[1:] for row in latex_rows(LABELS["table6"])]
    assert [row[1:] for row in printed_rows("table6")] == expected
    assert [row[0] for row in printed_rows("table6")] == ["Canonical", "Meaning"] * 2


def test_figures_have_the_digits_of_the_paper() -> None:
    mega = latex_rows(LABELS["table7"])
    assert [row[-2:] for row in printed_rows("table7")] == [row[-2:] for row in mega]


@pytest.mark.parametrize("dataset", ["overnight", "smcalflow"])
def test_the_utterances_of_the_examples_are_those_of_the_paper(dataset: str) -> None:
    assert dict(paper_figures().examples)[dataset] in source()  # type: ignore[index]
