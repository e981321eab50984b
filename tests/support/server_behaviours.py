"""Behaviours of servers that are called OpenAI-compatible: what they support, reject, ignore or get wrong."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Behaviour:
    """How a server behaves, each field seen in a real server; the defaults are those of a compliant one."""

    # endpoints and access
    model: str = "toy"
    any_model: bool = False
    """Accepts any model name."""
    key: str | None = None
    completions: bool = True
    tokenize: Literal["llama.cpp", "vllm"] | None = None
    """The API of `/tokenize`."""
    props: bool = False
    models_report: Literal["nothing", "meta", "max_model_len"] = "nothing"
    """Details in the list of models: llama.cpp's sizes of vocabulary and context, or vLLM's context length."""
    html: bool = False
    """Not a model server: returns a web page to every request."""
    rejected_fields: frozenset[str] = frozenset()
    context_length: int = 4096
    context_error: Literal["openai", "llama.cpp"] = "openai"
    """OpenAI rejects a completion that might not fit, llama.cpp only a prompt that does not."""

    # prompts
    accepts_token_ids: bool = True
    accepts_prompt_lists: bool = True
    first_prompt_only: bool = False
    """Completes only the first of a list of prompts."""
    supports_prefix: Literal["never", "always", "continue_final_message", "prefix"] = "never"
    """When a final assistant message is continued: if the request or that message has this flag."""
    repeats_prefix: bool = False
    """The text, though not the tokens, begins with the message that is continued."""
    echo: Literal["honoured", "ignored", "off_by_one"] = "honoured"
    """Off by one: each token is scored by the distribution after it."""

    # number and length of completions
    n: Literal["honoured", "ignored", "rejected"] = "honoured"
    max_n: int | None = None
    extra_choices: int = 0
    """Returns this many choices more (or fewer, if negative) than requested."""
    reorders_choices: bool = False
    """Returns choices in another order than that of their indices."""
    max_tokens_zero: Literal["honoured", "one_token", "rejected"] = "honoured"
    stop: Literal["shown", "hidden", "ignored"] = "shown"
    """Whether the log-probabilities include the stop; the text never does, unless it is ignored."""
    blank_stop: Literal["honoured", "rejected"] = "honoured"
    """A stop that is white space."""

    # sampling
    seed: Literal["honoured", "ignored"] = "honoured"
    same_samples: bool = False
    temperature_fixed: bool = False
    """Rejects every temperature but 1, as reasoning models of OpenAI do."""
    reasoning_tokens: int = 0
    """Tokens of each completion before its text, counted in its length, unless `reasoning_effort` is none."""
    efforts: tuple[str, ...] | None = None
    """The accepted values of `reasoning_effort`; any value is ignored if there is no list."""
    grammar: Literal["gbnf", "structured_outputs", "guided_grammar", "ebnf", "custom_tool"] | None = None
    """The only way to send a grammar that is accepted."""
    other_grammars: Literal["rejected", "ignored"] = "rejected"
    """Fields for grammars other than the accepted one."""

    # log-probabilities
    logprob_format: Literal["legacy", "content", "none"] = "legacy"
    """None: left out without an error. Chat responses have the `content` format, if any."""
    reports_token_ids: bool = True
    max_logprobs: int | None = None
    capped_logprobs: int | None = None
    """Returns at most this many alternatives, without an error."""
    tempered_logprobs: bool = False
    merged_tokens: Literal["never", "split_characters", "often"] = "never"
    """Two neighbours in one entry, with the id and the log-probability of the second: if both are bytes of a
    split character, as in llama.cpp, or for any two tokens."""
    end_text: str = "<|end|>"
    end_shown: bool = True
    end_shown_in_chat: bool = False

    # usage
    reports_usage: bool = True
    usage_of_first_choice: bool = False
    """Counts only the first of several choices."""


COMPLIANT = Behaviour()

LLAMA_CPP = Behaviour(
    any_model=True,
    tokenize="llama.cpp",
    props=True,
    models_report="meta",
    context_error="llama.cpp",
    supports_prefix="always",
    repeats_prefix=True,
    echo="ignored",
    max_n=4,
    max_tokens_zero="one_token",
    stop="hidden",
    grammar="gbnf",
    logprob_format="content",
    merged_tokens="split_characters",
    end_text="",
    end_shown_in_chat=True,
    usage_of_first_choice=True,
)
"""llama.cpp's server with four slots."""

LLAMA_CPP_PYTHON = Behaviour(accepts_token_ids=False, accepts_prompt_lists=False, echo="off_by_one", n="ignored")
"""The server of llama-cpp-python."""

OPENAI_REASONING = Behaviour(
    completions=False,
    rejected_fields=frozenset({"logprobs", "top_logprobs", "max_tokens", "stop", "top_k", "min_p"}),
    context_length=400_000,
    temperature_fixed=True,
    reasoning_tokens=40,
    efforts=("minimal", "low", "medium", "high"),
    grammar="custom_tool",
    logprob_format="none",
)
"""A reasoning model of OpenAI, which has custom tools and reports no log-probabilities."""

ANTHROPIC = Behaviour(
    completions=False, n="rejected", seed="ignored", blank_stop="rejected", logprob_format="none"
)
"""Anthropic's OpenAI-compatible endpoint, which ignores `logprobs`."""

VLLM = Behaviour(
    tokenize="vllm", models_report="max_model_len", grammar="structured_outputs", other_grammars="ignored"
)
SGLANG = Behaviour(models_report="max_model_len", grammar="ebnf", other_grammars="ignored")
"""vLLM and SGLang ignore fields that they do not know."""
