"""The options that several commands share, in groups for `--help`."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from fewparse import example
from fewparse.domains.constraints import CONSTRAINT_KINDS
from fewparse.domains.load import known_domains
from fewparse.lm.load import model_choices
from fewparse.registry import Registry
from fewparse.retrieve import retriever
from fewparse.retrieve.retriever import RETRIEVERS
from fewparse.search.decoder import DECODERS

INPUT, DECODING, PROMPT = "What to parse", "Decoding", "Prompt"
MODEL, REMOTE, OUTPUT = "Model", "Remote server", "Output"


def option(panel: str, help: str, *names: str, **settings: Any) -> Any:  # noqa: A002 -- as typer calls it
    """Return a typer option in a help panel."""
    return typer.Option(*names, help=help, rich_help_panel=panel, **settings)


def listing(registry: Registry[Any]) -> str:
    """Return the names of a registry for a help text."""
    return " | ".join(registry.choices)


def completion(names: Callable[[], Iterable[str]]) -> Callable[[str], list[str]]:
    """Return the shell completion of an argument; without a match, shells complete the paths of files."""

    def complete(incomplete: str) -> list[str]:
        return [name for name in names() if name.startswith(incomplete)]

    return complete


def choice(panel: str, help: str, registry: Registry[Any]) -> Any:  # noqa: A002 -- as typer calls it
    """Return a typer option whose values are the names of a registry."""
    return option(panel, f"{help}: {listing(registry)}.", autocompletion=completion(lambda: registry.choices))


Domain = Annotated[
    str,
    typer.Argument(
        help="Name of a domain, or path of its folder.",
        autocompletion=completion(known_domains),
    ),
]
Data = Annotated[
    Path | None,
    option(INPUT, "Folder of datasets (default: $FEWPARSE_DATA or the user's data directory).", "--data"),
]
Pool = Annotated[int | None, option(INPUT, "Use only the first POOL training examples.", min=1)]
Target = Annotated[
    example.Target | None,
    option(INPUT, f"Output of the model: {' | '.join(example.TARGETS)}.", parser=str, metavar="TEXT"),
]
Paper = Annotated[
    bool | None,
    option(
        INPUT,
        "Use the prompts, retrieval and search of the paper instead of the domain's; other options override them.",
        "--paper/--no-paper",
    ),
]
AllowCode = Annotated[
    bool,
    option(INPUT, "Run the code of a domain folder that is not trusted (see `fewparse trust`).", "--allow-code"),
]

Decoder = Annotated[str | None, choice(DECODING, "Search algorithm", DECODERS)]
Width = Annotated[int | None, option(DECODING, "Beam size, or number of samples per hypothesis.")]
Temperature = Annotated[float | None, option(DECODING, "Softmax temperature of speculative samples.")]
MaxTokens = Annotated[int | None, option(DECODING, "Maximum length of an output in tokens.", min=1)]
Constrained = Annotated[
    bool, option(DECODING, "Whether outputs must be well-formed.", "--constrained/--unconstrained")
]
Constraint = Annotated[
    str | None, choice(DECODING, "Kind of constraint instead of the domain's", CONSTRAINT_KINDS)
]
Grammar = Annotated[
    Path | None, option(DECODING, "Grammar file or folder instead of the domain's.", metavar="PATH")
]
Copy = Annotated[
    bool | None, option(DECODING, "Whether free text must be copied from the utterance.", "--copy/--no-copy")
]
IsolateGrammar = Annotated[
    bool,
    option(
        DECODING,
        "Compile the grammar in a child process first, with limits on memory and time: for one you do not trust.",
        "--isolate-grammar",
    ),
]
ServerGrammar = Annotated[
    bool | None,
    option(
        DECODING,
        "Let the server constrain samples by the grammar (default: if it reports no log-probabilities).",
        "--server-grammar/--no-server-grammar",
    ),
]
Rerank = Annotated[
    float | None, option(DECODING, "Weight of the reranking score, the word alignment with the utterance.", min=0)
]
Vote = Annotated[
    bool | None, option(DECODING, "Rank candidates by the probability of their answers.", "--vote/--no-vote")
]
MaxRisk = Annotated[
    float | None,
    option(
        OUTPUT,
        "Share of executed programs that may be wrong, by which a parse is executed, confirmed or declined "
        "(default: the domain's setting); 1 executes everything.",
        min=0,
        max=1,
    ),
]
Execute = Annotated[
    bool | None,
    option(
        OUTPUT,
        "Whether the program is executed (default: the domain's setting `execute`).",
        "--execute/--no-execute",
    ),
]
Rounds = Annotated[int | None, option(DECODING, "Maximum number of rounds of speculative decoding.")]
Margin = Annotated[
    float | None,
    option(DECODING, "Drop live hypotheses whose score is this much below the best finished one; `inf` for none."),
]
Alternatives = Annotated[int | None, option(DECODING, "Number of tokens that a sample reports per position.")]
FreeBackOff = Annotated[
    bool | None,
    option(
        DECODING,
        "Whether to continue a cut sample with the alternatives reported at the cut.",
        "--free-back-off/--no-free-back-off",
    ),
]
FreeBranching = Annotated[
    bool | None,
    option(
        DECODING,
        "Whether alternatives along a sample become hypotheses.",
        "--free-branching/--no-free-branching",
    ),
]
ForcedSpans = Annotated[
    bool | None,
    option(
        DECODING,
        "Whether to append continuations that the grammar forces without querying the model for each token.",
        "--forced-spans/--no-forced-spans",
    ),
]
Seed = Annotated[int | None, option(DECODING, "Random seed for sampling and shuffling.", min=0)]

Prompt = Annotated[str | None, option(PROMPT, "Name of a prompt template.")]
DescriptionLines = Annotated[
    int | None,
    option(PROMPT, "Maximum number of lines of the description in the prompt, the most similar ones.", min=0),
]
Examples = Annotated[int | None, option(PROMPT, "Number of examples in the prompt.", min=0)]
Retriever = Annotated[str | None, choice(PROMPT, "Retrieval method for examples", RETRIEVERS)]
RetrieverModel = Annotated[
    str | None,
    option(PROMPT, "Language model of a retriever that needs one (default: that of --model).", metavar="NAME"),
]
Order = Annotated[
    retriever.Order | None,
    option(
        PROMPT, f"Order of the examples in the prompt: {' | '.join(retriever.ORDERS)}.", parser=str, metavar="TEXT"
    ),
]

Model = Annotated[str, option(MODEL, f"Language model: {' | '.join(model_choices())}.")]
Adapter = Annotated[
    str | None,
    option(
        MODEL,
        "GGUF LoRA adapter for the embedded model, or `none` (default: the domain's own, if it was tuned).",
        metavar="PATH",
    ),
]

BaseUrl = Annotated[
    str | None,
    option(REMOTE, "Address of an OpenAI-compatible server (default: $OPENAI_BASE_URL).", metavar="URL"),
]
MaxConcurrency = Annotated[
    int | None, option(REMOTE, "Maximum number of concurrent requests, or of parses at a time in process.", min=1)
]
Timeout = Annotated[float | None, option(REMOTE, "Timeout of one request in seconds (default: 120).")]
Deadline = Annotated[
    float | None, option(REMOTE, "Seconds after which a request is no longer retried (default: 600).")
]
MaxTokensTotal = Annotated[int | None, option(REMOTE, "Maximum number of tokens of all requests.", min=1)]
MaxCost = Annotated[float | None, option(REMOTE, "Maximum cost of all requests in dollars.", min=0)]
Cache = Annotated[bool, option(REMOTE, "Whether responses are cached and reused.", "--cache/--no-cache")]
ContextLength = Annotated[
    int | None, option(REMOTE, "Context length of a server that does not report it, in tokens.", min=1)
]
