"""How a server behaves that calls itself OpenAI-compatible: what it can, what it refuses, how it lies."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Manners:
    """Each one a behaviour met in the wild; the defaults are those of a server that does as it is asked."""

    # who may ask, and for what
    model: str = "toy"
    any_model: bool = False
    """Whatever model is asked for, this one answers."""
    key: str | None = None
    completions: bool = True
    tokenize: Literal["llama.cpp", "vllm"] | None = None
    """Whose dialect `/tokenize` speaks."""
    props: bool = False
    models_tell: Literal["nothing", "meta", "max_model_len"] = "nothing"
    """What the list of models says beyond names: llama.cpp's sizes of vocabulary and context, or vLLM's limit."""
    html: bool = False
    """Not a model's server at all: a web page, whatever is asked."""
    refused_fields: frozenset[str] = frozenset()
    context_length: int = 4096
    context_words: Literal["openai", "llama.cpp"] = "openai"
    """OpenAI refuses a completion that might not fit, llama.cpp only a prompt that does not."""

    # the prompt
    takes_ids: bool = True
    takes_lists: bool = True
    lists_answered_once: bool = False
    """Of a list of prompts only the first is answered: a lie."""
    supports_prefix: Literal["never", "always", "continue_final_message", "prefix"] = "never"
    """When a last message of the assistant is carried on: where the request or that message has this flag."""
    begun_repeated: bool = False
    """The text, though not the tokens, of a message that is carried on begins with what it began with."""
    echo: Literal["honoured", "ignored", "off_by_one"] = "honoured"
    """Off by one: every token is scored by what the model thought after it."""

    # how many, how long
    n: Literal["honoured", "ignored", "refused"] = "honoured"
    most_n: int | None = None
    wrong_choices: int = 0
    """So many choices more (or fewer, where negative) than asked for."""
    reordered: bool = False
    """The choices do not come in the order of their indices."""
    max_tokens_zero: Literal["honoured", "one_token", "refused"] = "honoured"
    stop: Literal["shown", "hidden", "ignored"] = "shown"
    """Whether the stop keeps its entry among the log-probabilities; it never is in the text, unless ignored."""

    # sampling
    seed: Literal["honoured", "ignored"] = "honoured"
    same_samples: bool = False
    grammar: Literal["gbnf", "structured_outputs", "guided_grammar"] | None = None
    """The only way in which a grammar is taken; refused in any other."""
    grammar_ignored: bool = False
    """Taken in any way, and not minded: a lie."""

    # log-probabilities
    logprob_format: Literal["legacy", "content", "none"] = "legacy"
    """None: left out without a word. The chat always answers in the form of `content`, if at all."""
    ids_told: bool = True
    most_logprobs: int | None = None
    silently_capped_logprobs: int | None = None
    tempered_logprobs: bool = False
    merged_tokens: Literal["never", "split_characters", "often"] = "never"
    """Two neighbours in one entry, with the id and the log-probability of the second: where both are bytes of a
    split character, as llama.cpp does, or wherever there are two."""
    end_text: str = "<|end|>"
    end_shown: bool = True
    end_shown_in_chat: bool = False

    # what it cost
    usage_told: bool = True
    usage_of_first: bool = False
    """Of several choices only the first is counted."""


HONEST = Manners()

LLAMA_CPP = Manners(
    any_model=True,
    tokenize="llama.cpp",
    props=True,
    models_tell="meta",
    context_words="llama.cpp",
    supports_prefix="always",
    begun_repeated=True,
    echo="ignored",
    most_n=4,
    max_tokens_zero="one_token",
    stop="hidden",
    grammar="gbnf",
    logprob_format="content",
    merged_tokens="split_characters",
    end_text="",
    end_shown_in_chat=True,
    usage_of_first=True,
)
"""llama.cpp's own server with four slots."""

LLAMA_CPP_PYTHON = Manners(takes_ids=False, takes_lists=False, echo="off_by_one", n="ignored")
"""The server of the Python bindings."""
