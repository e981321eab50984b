"""Assess a parse: features, confidence, decision and question. The parser calls it after reranking."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from fewparse.confidence.calibration import FILE, Calibration, Made, read_calibrations
from fewparse.confidence.features import ANSWER_FEATURES, FeatureExtractor, Features
from fewparse.confidence.question import question_about
from fewparse.confidence.readings import Evaluation, Reading, readings_of
from fewparse.domains.domain import Domain
from fewparse.errors import DomainError
from fewparse.events import Event
from fewparse.example import Candidate, Decision, Example, Question
from fewparse.files import exists, file_sha256
from fewparse.lm.load import model_identity
from fewparse.lm.model import LanguageModel
from fewparse.options import Options


@dataclass(frozen=True)
class Assessment:
    """What is known about a parse besides its candidates; `outcome` is that of the best one if it was executed."""

    confidence: float | None = None
    decision: Decision | None = None
    question: Question | None = None
    features: Features | None = None
    outcome: Evaluation | None = None


NOTHING = Assessment()


class Assessor:
    """Assesses the parses of a parser by the calibration of its domain that was made for its settings.

    Without one, `calibration` is None and `note` says why if the domain has others. `replaced` names a component
    of the parser that is not that of the domain, for which no calibration was made. Features are computed if there
    is a calibration, or with `always`.
    """

    def __init__(
        self,
        domain: Domain,
        model: LanguageModel,
        options: Options,
        always: bool = False,
        replaced: str | None = None,
    ) -> None:
        self.calibration, self.note = find_calibration(domain, model, options)
        self._domain = domain
        self._target = options.target
        self.always = always
        self._extractor = FeatureExtractor(domain, options.target)
        # Programs with effects, and queries of a database, are not executed for the sake of a comparison.
        may_execute = domain.executes and domain.allow_code and options.execute and domain.table.database is None
        self._execute = domain.execute if may_execute else None
        self.max_risk = options.max_risk
        if self.calibration is not None and (reason := self._unusable(replaced)) is not None:
            self.calibration, self.note = None, not_used(domain, reason)

    def assess(
        self,
        utterance: str,
        candidates: Sequence[Candidate],
        trace: Sequence[Event],
        without: Sequence[Example] = (),
    ) -> Assessment:
        """Return the assessment of a parse; if nothing is calibrated, it is empty."""
        if not candidates:
            return NOTHING if self.calibration is None else Assessment(decision="decline")
        if self.calibration is None and not self.always:
            return NOTHING
        readings = readings_of(candidates, self._execute)
        features = self._extractor.features(utterance, candidates, readings, trace, without)
        estimate = None if self.calibration is None else self.calibration.estimate(features)
        if estimate is None:
            return Assessment(features=features, outcome=readings[0].outcome)
        assert self.calibration is not None
        decision = self.calibration.decide(estimate, self.max_risk)
        return Assessment(
            confidence=estimate.confidence,
            decision=decision,
            question=self._question(candidates, readings) if decision == "confirm" else None,
            features=features,
            outcome=readings[0].outcome,
        )

    def _unusable(self, replaced: str | None) -> str | None:
        """Return why the calibration cannot be used although it was made for these settings; None if it can."""
        assert self.calibration is not None
        if replaced is not None:
            return f"the parser has another {replaced} than the domain"
        if self._execute is None and self.calibration.needs(ANSWER_FEATURES):
            return "it uses the answers of programs, and programs are not executed"
        return None

    def _question(self, candidates: Sequence[Candidate], readings: Sequence[Reading]) -> Question:
        return question_about(self._domain, self._target, candidates, readings)


def find_calibration(
    domain: Domain, model: LanguageModel, options: Options
) -> tuple[Calibration | None, str | None]:
    """Return the calibration of a domain for these settings; if it has others only, None and the reason."""
    if not domain.has_folder:
        return None, None
    of_target = [c for c in read_calibrations(calibration_path(domain)) if c.made_for.target == options.target]
    if not of_target:
        return None, None
    wanted = made_for(domain, model, options)
    differences = [calibration.made_for.difference(wanted) for calibration in of_target]
    if None in differences:
        return of_target[differences.index(None)], None
    hint = f"To calibrate this use, add the same options to: fewparse calibrate {domain.argument}"
    return None, f"{not_used(domain, f'it was made for {differences[0]}')}. {hint}"


def not_used(domain: Domain, reason: str) -> str:
    """Return the note on a calibration that is not used."""
    return f"the calibration of {domain.name} is not used, because {reason}: parses have no confidence"


def calibration_path(domain: Domain) -> Path:
    """Return the path of the calibrations of a domain, next to its examples; the file may not exist."""
    return domain.data_file(FILE)


def made_for(domain: Domain, model: LanguageModel, options: Options) -> Made:
    """Return what a calibration for these settings would be made for."""
    search = asdict(options.search)
    search["stop"] = options.search.stop.decode(errors="replace")
    del search["seed"]
    kept: dict[str, str | int | float | bool | None] = {
        name: str(value) if value in (float("inf"), float("-inf")) else value for name, value in search.items()
    }
    kept |= {name: getattr(options, name) for name in ("prompt", "examples", "constrained", "rerank", "vote")}
    if options.examples:
        kept |= {name: getattr(options, name) for name in ("retriever", "retriever_model", "order", "fold")}
    if options.server_grammar:
        kept["server_grammar"] = True
    return Made(
        target=options.target,
        model=model.name,
        identity=model_identity(model) or model.name,
        grammar=grammar_sha256(domain),
        decoder=kept,
    )


def grammar_sha256(domain: Domain) -> str:
    """Return a hash of the settings of the constraint and of the files that they name."""
    settings: Mapping[str, object] = domain.table.constraint.model_dump(mode="json")
    files = {}
    for name in (value for value in settings.values() if isinstance(value, str)):
        path = domain.folder / name
        found = [path] if path.is_file() else sorted(path.rglob("*")) if exists(path) and name else []
        files[name] = [file_sha256(file, DomainError) for file in found if file.is_file()]
    return hashlib.sha256(json.dumps([settings, files], sort_keys=True).encode()).hexdigest()
