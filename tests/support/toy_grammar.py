"""Grammars of requests to the toy server, enforced by llguidance: the engine of OpenAI, also available in vLLM."""

from typing import Any

import llguidance
from llguidance.gbnf_to_lark import any_to_lark

from fewparse.constrain.engine import engine_tokenizer
from fewparse.vocabulary import Vocabulary
from support.toy_model import END, TOKENS

VOCABULARY = Vocabulary(TOKENS, [END])


class InvalidGrammar(Exception):
    """A grammar that the engine rejects."""


class GrammarMask:
    """Which tokens of the toy model may follow in a text under a grammar in GBNF or Lark."""

    def __init__(self, source: str) -> None:
        try:
            rules = any_to_lark(source)
        except Exception as error:
            raise InvalidGrammar(str(error)) from None
        self._matcher: Any = llguidance.LLMatcher(engine_tokenizer(VOCABULARY), rules, log_level=0)
        if self._matcher.is_error():
            raise InvalidGrammar(self._matcher.get_error())

    def allowed(self, ids: list[int]) -> list[int]:
        """Return the tokens that may follow these."""
        matcher = self._matcher.deep_copy()
        assert matcher.try_consume_tokens(ids) == len(ids)
        found = [END] if matcher.is_accepting() else []
        texts = (i for i, token in enumerate(TOKENS) if token)
        return found + [i for i in texts if matcher.deep_copy().try_consume_tokens([i]) == 1]

    def accepts(self, text: str) -> bool:
        """Return whether a text is a sentence of the grammar."""
        matcher = self._matcher.deep_copy()
        ids = list(text.encode())  # the first tokens are the bytes
        return bool(matcher.try_consume_tokens(ids) == len(ids) and matcher.is_accepting())
