"""A real search: the embedded model on the starter domain."""

from pathlib import Path

from fewparse.domains.load import load_domain
from fewparse.evaluate.records import Records
from fewparse.lm.embedded import EmbeddedModel
from fewparse.optimize.budget import Budget
from fewparse.optimize.optimization import Plan, optimize
from fewparse.optimize.report import as_json, as_text
from fewparse.options import NO_ADAPTER, Options
from support.domain_files import trusted_starter


def test_the_starter_domain_is_searched_with_the_embedded_model(model: EmbeddedModel, tmp_path: Path) -> None:
    folder = trusted_starter(tmp_path / "home")
    lines = (folder / "examples.jsonl").read_text().splitlines(keepends=True)
    (folder / "examples.jsonl").write_text("".join(lines[:10]))
    domain = load_domain(folder)
    options = Options.resolve(domain, model.name, decoder="greedy", examples=2, adapter=NO_ADAPTER)
    given = {"decoder": "greedy", "examples": 2, "retriever": options.retriever, "order": options.order}
    records = Records(tmp_path / "records.jsonl")
    result = optimize(Plan(domain, model, options, given, Budget(3600), tmp_path, records))
    found = result.found
    assert found is not None
    assert found.completed
    present = found.outcomes[found.control.configuration]
    assert len(present) == len(domain.examples)
    assert 0 < sum(outcome.correct[-1] for outcome in present.values()) < len(present)
    assert found.rungs == [(1, 10)]
    text = as_text(result)
    assert text[0].startswith("Tried 1 of 1 configurations on up to 10 of 10 examples")
    assert max(map(len, text)) <= 110
    as_json_object = as_json(result)
    assert as_json_object["present"]["order"] == "best-last"
    parses = sum(each["items"] for each in as_json_object["tried"])
    assert len((tmp_path / "records.jsonl").read_text().splitlines()) == parses
