"""The whole way from a domain to its adapter: disturbed or not, the same adapter; whatever fails, a clear word."""

import errno
import os
import resource
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from fewparse.domains.domain import Domain
from fewparse.domains.load import load_domain
from fewparse.errors import ContextOverflow, TuningError, UsageError
from fewparse.example import Example
from fewparse.lm.adapter import Adapter, read_adapter
from fewparse.lm.embedded import EmbeddedModel
from fewparse.lm.local import LocalModel
from fewparse.lm.usage import Usage
from fewparse.parser import Parser
from fewparse.tune.config import TuneConfig
from fewparse.tune.tuning import Progress, Tuning, best_epochs
from support.switch_domain import EXAMPLES, make_switches
from support.tiny_model import write_tiny_model

CONFIG = TuneConfig(rank=4, rate=0.02, batch=5, epochs=3)
AT_ONCE = replace(CONFIG, epochs=1, held_out=0.0)
STEPS = 15  # 7 of 12 examples are fitted in two steps an epoch, then all in three
EXECUTOR = """\
from pathlib import Path

def execute(program):
    if Path(__file__).with_name("strict").exists():
        raise ValueError("nothing is right any more")
    return "everything is right"
"""


class Leaving(Exception):
    """What a user who leaves does to a tuning."""


def lenient(folder: Path) -> Domain:
    """The domain with an executor that finds everything right, so that the number of epochs is certain."""
    make_switches(folder)
    settings = (folder / "domain.toml").read_text()
    (folder / "domain.toml").write_text('executor = "executor.py:execute"\n' + settings)
    (folder / "executor.py").write_text(EXECUTOR)
    return load_domain(str(folder))


@pytest.fixture(scope="module")
def switches(tmp_path_factory: pytest.TempPathFactory) -> Domain:
    return lenient(tmp_path_factory.mktemp("domains") / "switches")


@pytest.fixture(scope="module")
def undisturbed(tiny: EmbeddedModel, switches: Domain, tmp_path_factory: pytest.TempPathFactory) -> Adapter:
    return Tuning(switches, "program", tiny, CONFIG, tmp_path_factory.mktemp("adapters") / "adapter.gguf").run()


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "adapters" / "adapter.gguf"


def beside(place: Path) -> list[str]:
    return sorted(os.listdir(place.parent)) if place.parent.exists() else []


def leaving(at: int) -> Callable[[Progress], None]:
    def report(progress: Progress) -> None:
        if progress.step == at:
            raise Leaving

    return report


def test_the_adapter_tells_what_it_was_tuned_for_and_on(
    undisturbed: Adapter, tiny: EmbeddedModel, switches: Domain
) -> None:
    told = undisturbed.provenance
    assert told is not None
    assert undisturbed == read_adapter(undisturbed.path)
    assert (told.domain, told.target, told.prompt) == ("switches", "program", "tuned")
    assert (told.base, told.base_sha256) == (tiny.name, tiny.sha256)
    assert told.data_sha256 == switches.data_sha256("program")
    assert (told.examples, told.epochs, told.held_out, told.held_out_correct) == (12, 3, 5, 5)
    assert told.config == asdict(CONFIG)
    assert beside(undisturbed.path) == ["adapter.gguf"]


def test_what_was_tuned_parses_what_it_was_taught(tiny: EmbeddedModel, switches: Domain, place: Path) -> None:
    adapter = Tuning(switches, "program", tiny, replace(AT_ONCE, epochs=25), place).run()
    before = Parser.from_domain(switches, tiny, examples=0)
    after = Parser.from_domain(switches, tiny, adapter=adapter.path)
    assert sum(before.parse(e.utterance).program == e.program for e in EXAMPLES) < 4
    assert sum(after.parse(e.utterance).program == e.program for e in EXAMPLES) > 8


def test_the_same_seed_gives_the_same_adapter_to_the_byte(
    undisturbed: Adapter, tiny: EmbeddedModel, switches: Domain, place: Path
) -> None:
    again = Tuning(switches, "program", tiny, CONFIG, place).run()
    assert again.path.read_bytes() == undisturbed.path.read_bytes()


def test_steps_are_counted_through_to_the_end(tiny: EmbeddedModel, switches: Domain, place: Path) -> None:
    told: list[Progress] = []
    Tuning(switches, "program", tiny, CONFIG, place, told.append).run()
    assert [progress.step for progress in told] == list(range(1, STEPS + 1))
    assert {progress.steps for progress in told} == {STEPS}
    assert [progress.epoch for progress in told] == [1, 1, 2, 2, 3, 3, 1, 1, 1, 2, 2, 2, 3, 3, 3]
    assert [progress.refitting for progress in told] == [False] * 6 + [True] * 9
    assert [progress.trial is None for progress in told] == [True] * 2 + [False] * 13


@pytest.mark.parametrize("at", [1, 4, 7, 11])
def test_a_tuning_that_was_broken_off_goes_on_after_the_last_epoch_to_the_same_adapter(
    undisturbed: Adapter, tiny: EmbeddedModel, switches: Domain, place: Path, at: int
) -> None:
    with pytest.raises(Leaving):
        Tuning(switches, "program", tiny, CONFIG, place, leaving(at)).run()
    assert beside(place) == ["adapter.gguf.tuning"]
    told: list[int] = []
    Tuning(switches, "program", tiny, CONFIG, place, lambda progress: told.append(progress.step)).run()
    begin = max(step for step in (1, 3, 5, 7, 10, 13) if step <= at)
    assert told == list(range(begin, STEPS + 1))
    assert place.read_bytes() == undisturbed.path.read_bytes()
    assert beside(place) == ["adapter.gguf"]


def test_who_changes_the_recipe_or_the_examples_begins_anew(
    tiny: EmbeddedModel, switches: Domain, place: Path, tmp_path: Path
) -> None:
    fewer = make_switches(tmp_path / "fewer", EXAMPLES[1:])
    for domain, config in ((switches, replace(CONFIG, rate=0.01)), (fewer, CONFIG)):
        with pytest.raises(Leaving):
            Tuning(switches, "program", tiny, CONFIG, place, leaving(3)).run()
        with pytest.raises(Leaving):
            Tuning(domain, "program", tiny, config, place, leaving(1)).run()


def test_with_nothing_held_out_all_epochs_are_gone_through_at_once(
    tiny: EmbeddedModel, switches: Domain, place: Path
) -> None:
    told: list[Progress] = []
    adapter = Tuning(switches, "program", tiny, replace(CONFIG, held_out=0.0), place, told.append).run()
    assert [(progress.refitting, progress.epoch) for progress in told] == [
        (True, e) for e in (1, 2, 3) for _ in "abc"
    ]
    assert adapter.provenance is not None
    assert (adapter.provenance.epochs, adapter.provenance.held_out, adapter.provenance.held_out_correct) == (
        3,
        0,
        0,
    )


def test_the_search_for_epochs_is_given_up_after_some_that_were_worse(tiny: EmbeddedModel, tmp_path: Path) -> None:
    domain = lenient(tmp_path / "switches")
    told: list[Progress] = []

    def report(progress: Progress) -> None:
        told.append(progress)
        if progress.epoch == 3 and not progress.refitting:
            (domain.folder / "strict").touch()

    config = replace(CONFIG, epochs=9, patience=2)
    adapter = Tuning(domain, "program", tiny, config, tmp_path / "adapter.gguf", report).run()
    assert [p.epoch for p in told if not p.refitting] == [1, 1, 2, 2, 3, 3, 4, 4]
    assert [p.trial for p in told if not p.refitting] == [None, None, 5, 5, 5, 5, 0, 0]
    assert {p.epochs for p in told if p.refitting} == {2}
    assert adapter.provenance is not None
    assert (adapter.provenance.epochs, adapter.provenance.held_out_correct) == (2, 5)


@pytest.mark.parametrize(
    ("trials", "best"),
    [
        ([], 0),
        ([0], 1),
        ([0, 0, 0], 3),
        ([0, 3, 5], 3),
        ([10, 9], 1),
        ([5, 4, 3, 2], 2),
        ([0, 9, 8, 7], 2),
        ([0, 6, 0, 6, 3], 4),
        ([0, 5, 4, 5, 4, 3], 5),
    ],
)
def test_the_best_epoch_is_the_last_that_is_not_plainly_worse_than_another(trials: list[int], best: int) -> None:
    assert best_epochs(trials, 10) == best


def test_fewer_than_ten_examples_are_too_few(tiny: EmbeddedModel, place: Path, tmp_path: Path) -> None:
    few = make_switches(tmp_path / "few", EXAMPLES[:9])
    with pytest.raises(UsageError, match="9 examples are too few to tune a model"):
        Tuning(few, "program", tiny, CONFIG, place)
    enough = make_switches(tmp_path / "enough", EXAMPLES[:10])
    told = Tuning(enough, "program", tiny, AT_ONCE, place).run().provenance
    assert told is not None
    assert told.examples == 10


def test_an_example_longer_than_the_context_is_refused_with_both_lengths(
    tiny: EmbeddedModel, place: Path, tmp_path: Path
) -> None:
    long = make_switches(tmp_path / "long", [*EXAMPLES, Example("the lamp " * 300, "(on lamp hall)")])
    with pytest.raises(ContextOverflow) as caught:
        Tuning(long, "program", tiny, CONFIG, place)
    assert caught.value.needed > caught.value.available == tiny.context_length


def test_a_loss_beyond_all_numbers_ends_the_tuning(switches: Domain, place: Path, tmp_path: Path) -> None:
    broken = EmbeddedModel(write_tiny_model(tmp_path / "broken.gguf", spread=1e25))
    with pytest.raises(TuningError, match=r"the loss has become nan\n  Learn more slowly: halve --rate"):
        Tuning(switches, "program", broken, AT_ONCE, place).run()
    assert not place.exists()
    broken.close()


def test_a_full_disk_at_the_end_keeps_the_old_adapter_and_the_next_run_only_writes(
    tiny: EmbeddedModel, switches: Domain, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = Tuning(switches, "program", tiny, AT_ONCE, place).run().path.read_bytes()
    place.write_bytes(b"the old one")
    kept = os.fsync

    def full_disk(file: int) -> None:
        if (place.parent / "adapter.gguf.part").exists():
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        kept(file)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full_disk)
        with pytest.raises(TuningError, match=r"adapter\.gguf cannot be written: No space left on device"):
            Tuning(switches, "program", tiny, AT_ONCE, place).run()
    assert place.read_bytes() == b"the old one"
    assert beside(place) == ["adapter.gguf", "adapter.gguf.tuning"]
    told: list[Progress] = []
    Tuning(switches, "program", tiny, AT_ONCE, place, told.append).run()
    assert (place.read_bytes(), told) == (expected, [])
    assert beside(place) == ["adapter.gguf"]


@pytest.mark.parametrize(("most", "named"), [(4_000, "trial.gguf"), (40_000, "adapter.gguf.tuning")])
def test_no_room_for_a_trial_or_for_the_way_so_far_is_explained(
    tiny: EmbeddedModel, switches: Domain, place: Path, most: int, named: str
) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    tuning = Tuning(switches, "program", tiny, CONFIG, place)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, before[1]))
    try:
        with pytest.raises(TuningError, match=f"{named} cannot be written: .*\n  Make room"):
            tuning.run()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert beside(place) == ["adapter.gguf.tuning"]


def test_a_name_that_ends_as_that_of_unfinished_work_is_one_like_any_other(
    tiny: EmbeddedModel, switches: Domain, tmp_path: Path
) -> None:
    adapter = Tuning(switches, "program", tiny, AT_ONCE, tmp_path / "adapter.tuning").run()
    assert read_adapter(tmp_path / "adapter.tuning") == adapter


def likelihood(model: LocalModel, domain: Domain) -> float:
    """The mean log-probability of the outputs of a domain, asked without examples."""
    template, scores = domain.template("tuned"), list[float]()
    for example in domain.examples:
        said = model.tokenize(f"{template.lead}{example.program}{template.stop}")
        scores.append(sum(model.score(template.render([], example.utterance), [()], [said], Usage())[0]))
    return sum(scores) / len(scores)


@pytest.mark.slow
def test_the_embedded_model_finds_what_it_was_taught_far_likelier(model: EmbeddedModel, place: Path) -> None:
    starter = load_domain("starter", pool=10)
    config = TuneConfig(epochs=2, batch=5, rate=2e-3, held_out=0.0)
    adapter = Tuning(starter, "program", model, config, place).run()
    before, after = likelihood(model, starter), likelihood(model.with_adapter(adapter), starter)
    assert after > before / 2
