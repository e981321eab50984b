"""Build the prompt of an utterance: retrieve examples, and fit them and the description into the context."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from itertools import islice

from fewparse.domains.domain import Domain
from fewparse.errors import ContextOverflow
from fewparse.example import Example
from fewparse.lm.load import NamedModel
from fewparse.lm.model import LanguageModel
from fewparse.lm.usage import Usage
from fewparse.options import Options
from fewparse.prompt import Pair, Prompt, Template
from fewparse.retrieve.description import DescriptionLines
from fewparse.retrieve.retriever import (
    Pool,
    Retriever,
    ScoringRetriever,
    check_ranking,
    fit,
    open_retriever,
    ordered,
)


class PromptBuilder:
    """Builds prompts for a domain, a model and options.

    `retriever` replaces the one that the options name; `retriever_model` is for a retriever that needs a model.
    """

    def __init__(
        self,
        domain: Domain,
        model: LanguageModel,
        options: Options,
        template: Template,
        retriever: Retriever | None,
        retriever_model: LanguageModel | NamedModel | None,
    ) -> None:
        self._domain = domain
        self._model = model
        self._options = options
        self._template = template
        self._given_retriever = retriever
        self._retriever_model = retriever_model

    @property
    def _max_prompt(self) -> int:
        return self._model.context_length - self._options.search.max_tokens

    def build(
        self, utterance: str, context: str, without: Sequence[Example], usage: Usage
    ) -> tuple[tuple[Example, ...], Prompt]:
        """Return the examples that fit into the context, best first, and the prompt with them.

        Raises `ContextOverflow` if the prompt does not fit without any example either.
        """
        pool = self._domain.examples
        wanted = self._options.examples
        ranked = check_ranking(self._retriever.rank(utterance, usage), len(pool)) if wanted and pool else []
        excluded = {example.key for example in without}
        usable = (pool[i] for i in ranked if pool[i].key not in excluded)
        best_first = list(islice(usable, wanted))
        template, lines_dropped = self._described(utterance, context, bool(best_first), usage)

        def render(examples: Sequence[Example]) -> Prompt:
            in_order = ordered(examples, self._options.order, self._options.search.seed)
            pairs = [Pair(e.utterance, e.output(self._options.target), e.context) for e in in_order]
            return replace(template.render(pairs, utterance, context), lines_dropped=lines_dropped)

        used = fit(best_first, lambda examples: self._model.prompt_length(render(examples)) <= self._max_prompt)
        prompt = render(used)
        if (length := self._model.prompt_length(prompt)) > self._max_prompt:
            raise ContextOverflow(length + self._options.search.max_tokens, self._model.context_length)
        return tuple(used), prompt

    def similarities(self, utterance: str, others: Sequence[str]) -> list[float] | None:
        """Return the similarities of utterances of the pool; None if the retriever is not a `ScoringRetriever`."""
        retriever = self._retriever
        scores = retriever.scores(utterance, Usage()) if isinstance(retriever, ScoringRetriever) else None
        if scores is None:
            return None
        by_utterance = {e.utterance: float(s) for e, s in zip(self._domain.examples, scores, strict=True)}
        return [by_utterance[other] for other in others]

    def _described(self, utterance: str, context: str, with_examples: bool, usage: Usage) -> tuple[Template, int]:
        """Return the template with as much of the description as fits, and how many lines were dropped.

        If there are examples, the description takes up at most half of the room.
        """
        if not self._template.has_description:
            return self._template, 0
        room = self._max_prompt // 2 if with_examples else self._max_prompt

        def described(lines: Sequence[str]) -> Template:
            return self._template.with_description(self._domain.description(lines))

        def fits(lines: Sequence[str]) -> bool:
            return self._model.prompt_length(described(lines).render([], utterance, context)) <= room

        lines, dropped = self._description_lines.shortened(utterance, fits, usage)
        return described(lines), dropped

    @cached_property
    def _retriever(self) -> Retriever:
        if self._given_retriever is not None:
            return self._given_retriever
        utterances = [example.utterance for example in self._domain.examples]
        pool = Pool(utterances, self._retriever_model or self._model, self._options.search.seed)
        return open_retriever(self._options.retriever, pool, self._domain.fold if self._options.fold else None)

    @cached_property
    def _description_lines(self) -> DescriptionLines:
        pool = Pool(self._domain.description_lines, self._model)
        return DescriptionLines(pool, self._options.description_lines)
