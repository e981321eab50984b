"""`execute = "on-request"`: programs with effects are executed only where a caller asks for it."""

from pathlib import Path

import pytest

from fewparse import Domain, ExecutionError, Judge, Parser, UsageError, load_domain
from fewparse.domains.check import check_domain
from fewparse.options import Options, prepare
from support.domain_files import write_domain
from support.letters_domain import EXAMPLES, GRAMMAR, SETTINGS
from support.toy_model import LongContextToyModel

EXECUTOR = """
from pathlib import Path

LOG = Path(__file__).with_name("executed.txt")
LOG.touch()


def execute(program):
    with LOG.open("a") as file:
        print(program, file=file)
    return len(program)
"""


@pytest.fixture
def domain(tmp_path: Path) -> Domain:
    """A domain whose executor writes down what it executes."""
    settings = f'execute = "on-request"\nexecutor = "executor.py:execute"\n{SETTINGS}'
    pairs = [{"utterance": u, "program": p} for u, p in EXAMPLES]
    files = {"grammar.lark": GRAMMAR, "executor.py": EXECUTOR}
    return load_domain(write_domain(tmp_path / "letters", settings, pairs, files))


def executed(domain: Domain) -> list[str] | None:
    """Return the programs that were executed; None if the executor was not even loaded."""
    log = domain.folder / "executed.txt"
    return log.read_text().split() if log.exists() else None


def test_a_parse_executes_nothing_unless_it_is_asked_to(domain: Domain) -> None:
    parse = Parser.from_domain(domain, LongContextToyModel()).parse("one")
    assert parse.program is not None
    assert (parse.answer, parse.answer_error) == (None, None)
    assert executed(domain) is None
    asked = Parser.from_domain(domain, LongContextToyModel(), execute=True).parse("one")
    assert asked.answer == len(parse.program)
    assert executed(domain) == [parse.program]


def test_a_check_and_an_evaluation_execute_nothing(domain: Domain) -> None:
    assert check_domain(domain).passed
    judge = Judge(domain)
    assert judge.criterion == "text"
    assert judge.is_correct("abc", "abc")
    assert not judge.is_correct("ac", "abc")
    with pytest.raises(ExecutionError):
        judge.execute("abc")
    assert executed(domain) is None


def test_a_vote_executes_all_candidates_so_it_must_be_asked_for(domain: Domain) -> None:
    with pytest.raises(UsageError, match="executed on request only"):
        Options.resolve(domain, vote=True)
    assert Options.resolve(domain, vote=True, execute=True).vote


def test_programs_without_effects_are_executed_unless_that_is_switched_off(domain: Domain) -> None:
    settings = domain.folder / "domain.toml"
    settings.write_text(settings.read_text().replace('"on-request"', '"always"'))
    always = load_domain(domain.folder)
    assert Judge(always).criterion == "answer"
    assert Parser.from_domain(always, LongContextToyModel(), execute=False).parse("one").answer is None
    assert Parser.from_domain(always, LongContextToyModel()).parse("one").answer is not None


def test_code_that_is_not_trusted_is_needed_only_for_a_request(domain: Domain) -> None:
    careful = load_domain(domain.folder, allow_code=False)
    careful.require_code()
    parser = Parser.from_domain(domain.folder, LongContextToyModel(), execute=True, allow_code=False)
    assert "not trusted" in str(parser.parse("one").answer_error)
    assert executed(domain) is None


def test_a_request_without_an_executor_is_an_error(domain: Domain) -> None:
    settings = domain.folder / "domain.toml"
    settings.write_text(settings.read_text().replace('executor = "executor.py:execute"\n', ""))
    with pytest.raises(UsageError, match="has no executor"):
        prepare(domain.folder, "toy", execute=True)
