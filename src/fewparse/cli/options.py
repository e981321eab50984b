"""The options of a parse, as every command that parses spells them."""

from pathlib import Path
from typing import Annotated

import typer

from fewparse.domains.schema import ConstraintKind
from fewparse.lm.load import model_names
from fewparse.retrieve.arrange import ORDERS
from fewparse.retrieve.retriever import RETRIEVERS
from fewparse.search.settings import DECODERS

Domain = Annotated[str, typer.Argument(help="A domain's name, or the path of its folder.")]
Data = Annotated[
    Path | None,
    typer.Option("--data", help="The data folder (default: $FEWPARSE_DATA or the user's data directory)."),
]
Adapter = Annotated[
    str | None,
    typer.Option(
        help="A GGUF adapter for the embedded model, or `none` (default: the domain's own, where it was tuned).",
        metavar="PATH",
    ),
]
Pool = Annotated[
    int | None, typer.Option(help="How many of the training examples are taught, from the first.", min=1)
]
Constraint = Annotated[ConstraintKind | None, typer.Option(help="What is well-formed.")]
Grammar = Annotated[
    Path | None, typer.Option(help="A grammar file or folder in place of the domain's own.", metavar="PATH")
]
Copy = Annotated[
    bool | None, typer.Option("--copy/--no-copy", help="Whether free text must be copied from the utterance.")
]
Decoder = Annotated[str | None, typer.Option(help=" | ".join(DECODERS))]
Width = Annotated[int | None, typer.Option(help="Beam size, or samples a hypothesis.")]
Temperature = Annotated[float | None, typer.Option(help="Of speculative samples.")]
MaxTokens = Annotated[int | None, typer.Option(help="The longest output.", min=1)]
Unconstrained = Annotated[bool, typer.Option("--unconstrained", help="Let the model say anything.")]
Examples = Annotated[int | None, typer.Option(help="Examples in the prompt.", min=0)]
Retriever = Annotated[str | None, typer.Option(help=" | ".join(RETRIEVERS))]
Order = Annotated[str | None, typer.Option(help=" | ".join(ORDERS))]
Prompt = Annotated[str | None, typer.Option(help="A prompt template's name.")]
Target = Annotated[str | None, typer.Option(help="program | canonical")]
Rerank = Annotated[float | None, typer.Option(help="Weight of the alignment with the utterance.", min=0)]
Vote = Annotated[
    bool | None, typer.Option("--vote/--no-vote", help="Choose the answer that most of the candidates give.")
]
Model = Annotated[str, typer.Option(help=" | ".join(model_names()))]
Seed = Annotated[int | None, typer.Option(help="For samples and shuffles.", min=0)]
BaseUrl = Annotated[
    str | None,
    typer.Option(help="The address of an OpenAI-compatible server (default: $OPENAI_BASE_URL).", metavar="URL"),
]
MaxConcurrency = Annotated[int | None, typer.Option(help="Requests to a server at the same time.", min=1)]
Timeout = Annotated[float | None, typer.Option(help="Seconds that a server has for one answer (default: 120).")]
Deadline = Annotated[float | None, typer.Option(help="Seconds until a question is given up (default: 600).")]
MaxTokensTotal = Annotated[int | None, typer.Option(help="The most tokens that all requests may take.", min=1)]
MaxCost = Annotated[float | None, typer.Option(help="The most dollars that all requests may cost.", min=0)]
Cache = Annotated[bool, typer.Option("--cache/--no-cache", help="Whether a server's answers are kept and reused.")]
ContextLength = Annotated[int | None, typer.Option(help="The context of a server that does not tell it.", min=1)]
ServerGrammar = Annotated[
    bool, typer.Option("--server-grammar", help="Let the server keep samples to the grammar, where it can.")
]
