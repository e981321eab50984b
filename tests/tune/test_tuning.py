"""Tuning a domain: the same adapter with and without interruptions, and clear errors."""

import errno
import os
import resource
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

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

CONFIG = TuneConfig(rank=4, learning_rate=0.02, batch_size=5, epochs=3)
ONE_EPOCH = replace(CONFIG, epochs=1, held_out=0.0)
FILES = ["adapter.gguf", "adapter.svg"]
STEPS = 15  # per epoch: two steps for 7 of 12 examples, then three for all
EXECUTOR = """\
from pathlib import Path

def execute(program):
    if Path(__file__).with_name("strict").exists():
        raise ValueError("every program is wrong")
    return "every program is correct"
"""


class Interrupted(Exception):
    """Raised by a report, like an interrupt by the user."""


def lenient(folder: Path) -> Domain:
    """The domain with an executor by which every program is correct, so that the number of epochs is certain."""
    make_switches(folder)
    settings = (folder / "domain.toml").read_text()
    (folder / "domain.toml").write_text('executor = "executor.py:execute"\n' + settings)
    (folder / "executor.py").write_text(EXECUTOR)
    return load_domain(str(folder))


@pytest.fixture(scope="module")
def switches(tmp_path_factory: pytest.TempPathFactory) -> Domain:
    return lenient(tmp_path_factory.mktemp("domains") / "switches")


@pytest.fixture(scope="module")
def uninterrupted(tiny: EmbeddedModel, switches: Domain, tmp_path_factory: pytest.TempPathFactory) -> Adapter:
    return Tuning(switches, "program", tiny, CONFIG, tmp_path_factory.mktemp("adapters") / "adapter.gguf").run()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "adapters" / "adapter.gguf"


def files_in_folder(path: Path) -> list[str]:
    return sorted(os.listdir(path.parent)) if path.parent.exists() else []


def interrupt(at: int) -> Callable[[Progress], None]:
    def report(progress: Progress) -> None:
        if progress.step == at:
            raise Interrupted

    return report


def test_the_provenance_has_target_data_and_every_hyperparameter(
    uninterrupted: Adapter, tiny: EmbeddedModel, switches: Domain
) -> None:
    provenance = uninterrupted.provenance
    assert provenance is not None
    assert uninterrupted == read_adapter(uninterrupted.path)
    assert (provenance.domain, provenance.target, provenance.prompt) == ("switches", "program", "tuned")
    assert (provenance.base, provenance.base_sha256) == (tiny.name, tiny.sha256)
    assert provenance.data_sha256 == switches.data_sha256("program")
    assert (provenance.examples, provenance.epochs) == (12, 3)
    assert (provenance.held_out, provenance.held_out_correct) == (5, 5)
    assert provenance.config == CONFIG.as_dict()
    assert provenance.outputs_sha256 == switches.constraint_kind.outputs_sha256("program")
    assert files_in_folder(uninterrupted.path) == FILES


def test_a_tuned_model_parses_its_training_examples(tiny: EmbeddedModel, switches: Domain, path: Path) -> None:
    adapter = Tuning(switches, "program", tiny, replace(ONE_EPOCH, epochs=25), path).run()
    before = Parser.from_domain(switches, tiny, examples=0)
    after = Parser.from_domain(switches, tiny, adapter=adapter.path)
    assert sum(before.parse(e.utterance).program == e.program for e in EXAMPLES) < 4
    assert sum(after.parse(e.utterance).program == e.program for e in EXAMPLES) > 8


def test_the_same_seed_gives_the_same_adapter_byte_by_byte(
    uninterrupted: Adapter, tiny: EmbeddedModel, switches: Domain, path: Path
) -> None:
    again = Tuning(switches, "program", tiny, CONFIG, path).run()
    assert again.path.read_bytes() == uninterrupted.path.read_bytes()


def test_progress_counts_the_steps_of_both_phases(tiny: EmbeddedModel, switches: Domain, path: Path) -> None:
    reports: list[Progress] = []
    Tuning(switches, "program", tiny, CONFIG, path, reports.append).run()
    assert [progress.step for progress in reports] == list(range(1, STEPS + 1))
    assert {progress.steps for progress in reports} == {STEPS}
    assert [progress.epoch for progress in reports] == [1, 1, 2, 2, 3, 3, 1, 1, 1, 2, 2, 2, 3, 3, 3]
    assert [progress.refitting for progress in reports] == [False] * 6 + [True] * 9
    assert [progress.held_out_correct is None for progress in reports] == [True] * 2 + [False] * 13


@pytest.mark.parametrize("at", [1, 4, 7, 11])
def test_an_interrupted_run_resumes_after_the_last_epoch_and_gives_the_same_adapter(
    uninterrupted: Adapter, tiny: EmbeddedModel, switches: Domain, path: Path, at: int
) -> None:
    with pytest.raises(Interrupted):
        Tuning(switches, "program", tiny, CONFIG, path, interrupt(at)).run()
    assert files_in_folder(path) == ["adapter.gguf.tuning"]
    steps: list[int] = []
    Tuning(switches, "program", tiny, CONFIG, path, lambda progress: steps.append(progress.step)).run()
    first = max(step for step in (1, 3, 5, 7, 10, 13) if step <= at)
    assert steps == list(range(first, STEPS + 1))
    assert path.read_bytes() == uninterrupted.path.read_bytes()
    assert path.with_suffix(".svg").read_bytes() == uninterrupted.path.with_suffix(".svg").read_bytes()
    assert files_in_folder(path) == FILES


def test_a_run_with_another_configuration_or_other_examples_starts_anew(
    tiny: EmbeddedModel, switches: Domain, path: Path, tmp_path: Path
) -> None:
    fewer = make_switches(tmp_path / "fewer", EXAMPLES[1:])
    for domain, config in ((switches, replace(CONFIG, learning_rate=0.01)), (fewer, CONFIG)):
        with pytest.raises(Interrupted):
            Tuning(switches, "program", tiny, CONFIG, path, interrupt(3)).run()
        with pytest.raises(Interrupted):
            Tuning(domain, "program", tiny, config, path, interrupt(1)).run()


OTHER_VALUES: dict[str, Any] = {
    "rank": 2,
    "scale": 1.0,
    "learning_rate": 0.01,
    "batch_size": 4,
    "epochs": 4,
    "patience": 2,
    "held_out": 0.2,
    "seed": 1,
    "warmup": 0.2,
    "final_learning_rate": 0.5,
    "beta1": 0.8,
    "beta2": 0.9,
    "weight_decay": 0.1,
    "max_grad_norm": 0.5,
    "augmented": 0.25,
    "layers": ("attn_q",),
}


@pytest.mark.parametrize("name", [field.name for field in fields(TuneConfig)])
def test_every_hyperparameter_is_part_of_the_resume_key(
    tiny: EmbeddedModel, switches: Domain, path: Path, name: str
) -> None:
    changed = replace(CONFIG, **{name: OTHER_VALUES[name]})
    before, after = (Tuning(switches, "program", tiny, config, path) for config in (CONFIG, changed))
    assert before.key == Tuning(switches, "program", tiny, CONFIG, path).key
    assert before.key != after.key


@pytest.mark.parametrize("name", [field.name for field in fields(TuneConfig)])
def test_every_hyperparameter_is_in_the_provenance(uninterrupted: Adapter, name: str) -> None:
    assert uninterrupted.provenance is not None
    value = getattr(CONFIG, name)
    assert uninterrupted.provenance.config[name] == (list(value) if name == "layers" else value)


def test_without_held_out_examples_all_epochs_train_on_all_examples(
    tiny: EmbeddedModel, switches: Domain, path: Path
) -> None:
    reports: list[Progress] = []
    adapter = Tuning(switches, "program", tiny, replace(CONFIG, held_out=0.0), path, reports.append).run()
    assert [(progress.refitting, progress.epoch) for progress in reports] == [
        (True, e) for e in (1, 2, 3) for _ in "abc"
    ]
    assert adapter.provenance is not None
    assert (adapter.provenance.epochs, adapter.provenance.held_out, adapter.provenance.held_out_correct) == (
        3,
        0,
        0,
    )


def test_fitting_stops_after_some_epochs_that_were_worse(tiny: EmbeddedModel, tmp_path: Path) -> None:
    domain = lenient(tmp_path / "switches")
    reports: list[Progress] = []

    def report(progress: Progress) -> None:
        reports.append(progress)
        if progress.epoch == 3 and not progress.refitting:
            (domain.folder / "strict").touch()

    config = replace(CONFIG, epochs=9, patience=2)
    adapter = Tuning(domain, "program", tiny, config, tmp_path / "adapter.gguf", report).run()
    assert [p.epoch for p in reports if not p.refitting] == [1, 1, 2, 2, 3, 3, 4, 4]
    assert [p.held_out_correct for p in reports if not p.refitting] == [None, None, 5, 5, 5, 5, 0, 0]
    assert {p.epochs for p in reports if p.refitting} == {2}
    assert adapter.provenance is not None
    assert (adapter.provenance.epochs, adapter.provenance.held_out_correct) == (2, 5)


@pytest.mark.parametrize(
    ("correct_by_epoch", "best"),
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
def test_the_best_epoch_is_the_last_within_a_standard_error_of_the_maximum(
    correct_by_epoch: list[int], best: int
) -> None:
    assert best_epochs(correct_by_epoch, 10) == best


def test_fewer_than_ten_examples_are_too_few(tiny: EmbeddedModel, path: Path, tmp_path: Path) -> None:
    few = make_switches(tmp_path / "few", EXAMPLES[:9])
    with pytest.raises(UsageError, match="9 examples are too few to tune a model"):
        Tuning(few, "program", tiny, CONFIG, path)
    enough = make_switches(tmp_path / "enough", EXAMPLES[:10])
    provenance = Tuning(enough, "program", tiny, ONE_EPOCH, path).run().provenance
    assert provenance is not None
    assert provenance.examples == 10


def test_an_example_longer_than_the_context_is_an_error_with_both_lengths(
    tiny: EmbeddedModel, path: Path, tmp_path: Path
) -> None:
    long = make_switches(tmp_path / "long", [*EXAMPLES, Example("the lamp " * 300, "(on lamp hall)")])
    with pytest.raises(ContextOverflow) as caught:
        Tuning(long, "program", tiny, CONFIG, path)
    assert caught.value.needed > caught.value.available == tiny.context_length


def test_a_loss_that_is_not_finite_ends_the_run(switches: Domain, path: Path, tmp_path: Path) -> None:
    broken = EmbeddedModel(write_tiny_model(tmp_path / "broken.gguf", spread=1e25))
    with pytest.raises(TuningError, match=r"the loss is nan\n  Use a lower learning rate: halve --learning-rate"):
        Tuning(switches, "program", broken, ONE_EPOCH, path).run()
    assert not path.exists()
    broken.close()


def test_a_full_disk_at_the_end_keeps_the_old_adapter_and_the_next_run_only_writes_the_new_one(
    tiny: EmbeddedModel, switches: Domain, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = Tuning(switches, "program", tiny, ONE_EPOCH, path).run().path.read_bytes()
    path.write_bytes(b"the old one")
    fsync = os.fsync

    def full_disk(file: int) -> None:
        if list(path.parent.glob("adapter.gguf.[0-9]*.part")):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        fsync(file)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full_disk)
        with pytest.raises(TuningError, match=r"adapter\.gguf cannot be written: No space left on device"):
            Tuning(switches, "program", tiny, ONE_EPOCH, path).run()
    assert path.read_bytes() == b"the old one"
    assert files_in_folder(path) == ["adapter.gguf", "adapter.gguf.tuning", "adapter.svg"]
    reports: list[Progress] = []
    Tuning(switches, "program", tiny, ONE_EPOCH, path, reports.append).run()
    assert (path.read_bytes(), reports) == (expected, [])
    assert files_in_folder(path) == FILES


@pytest.mark.parametrize(("max_size", "named"), [(4_000, "trial.gguf"), (40_000, "adapter.gguf.tuning")])
def test_a_full_disk_during_training_is_explained(
    tiny: EmbeddedModel, switches: Domain, path: Path, max_size: int, named: str
) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    tuning = Tuning(switches, "program", tiny, CONFIG, path)
    resource.setrlimit(resource.RLIMIT_FSIZE, (max_size, before[1]))
    try:
        with pytest.raises(TuningError, match=f"{named} cannot be written: .*\n  Free some disk space"):
            tuning.run()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert files_in_folder(path) == ["adapter.gguf.tuning"]


def test_an_adapter_may_have_the_suffix_of_a_checkpoint(
    tiny: EmbeddedModel, switches: Domain, tmp_path: Path
) -> None:
    adapter = Tuning(switches, "program", tiny, ONE_EPOCH, tmp_path / "adapter.tuning").run()
    assert read_adapter(tmp_path / "adapter.tuning") == adapter


def likelihood(model: LocalModel, domain: Domain) -> float:
    """The mean log-probability of the outputs of a domain, without examples in the prompt."""
    template, scores = domain.template("tuned"), list[float]()
    for example in domain.examples:
        output = model.tokenize(f"{template.lead}{example.program}{template.stop}")
        scores.append(sum(model.score(template.render([], example.utterance), [()], [output], Usage())[0]))
    return sum(scores) / len(scores)


def test_tuning_raises_the_probability_of_the_training_outputs_in_the_embedded_model(
    model: EmbeddedModel, path: Path
) -> None:
    starter = load_domain("starter", pool=10)
    config = TuneConfig(epochs=2, batch_size=5, learning_rate=2e-3, held_out=0.0)
    adapter = Tuning(starter, "program", model, config, path).run()
    before, after = likelihood(model, starter), likelihood(model.with_adapter(adapter), starter)
    assert after > before / 2
