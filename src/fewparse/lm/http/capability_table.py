"""Show what a server supports: a table of the results of a probe, and in one sentence what is lost."""

from collections.abc import Iterator

from fewparse.lm.http.capabilities import DEFAULT_CONTEXT_LENGTH, Capabilities

YES = {True: "yes", False: "no"}
ONE_EACH = "one request per sample"
Row = tuple[str, str, str]


def lost(found: Capabilities) -> str:
    """Return in one sentence what cannot be done with a model of these capabilities."""
    if found.logprobs_format is None:
        limited = "constrained by the server" if found.grammar else "cut where they leave the grammar"
        return (
            f"The server reports no log-probabilities: whole outputs are sampled, {limited}, and ranked by how "
            "many of them agree; beam search, speculative rounds, the retriever `lm` and the features of "
            "confidence that need probabilities are lost."
        )
    if found.chat and found.continuation is None:
        return (
            "The server does not continue a partial output: whole outputs are sampled, and completed by the "
            "grammar; beam search, speculative rounds and the retriever `lm` are lost."
        )
    return "Nothing is lost: every decoder and every retriever can be used."


def table(found: Capabilities) -> Iterator[Row]:
    """Yield rows for display: the feature, the result, and its consequence."""
    yield from scores(found) if found.logprobs_format else [("log-probabilities", "no", "samples are counted")]
    yield from sampling(found)
    if found.logprobs_format is not None:
        yield from prefixes(found)
    yield "grammar", found.grammar or "no", grammar_use(found)
    context_length = found.context_length or f"not reported: {DEFAULT_CONTEXT_LENGTH} is assumed"
    yield "context length", str(context_length), ""
    yield "parallel slots", str(found.slots or "not reported"), ""
    yield from request_fields(found)
    for reason in found.ignored:
        yield "not valid", reason, "treated as not reported"


def scores(found: Capabilities) -> Iterator[Row]:
    """Yield the rows of log-probabilities."""
    yield "log-probabilities", f"{found.logprobs_format} format", "used to rank outputs"
    yield "alternatives per position", str(found.top_logprobs), "candidates for cuts and beams"
    vocabulary = f"{len(found.tokens)} tokens" if found.tokens else "not reported"
    yield "vocabulary", vocabulary, "exact masks" if found.tokens else "tokens are checked by their bytes only"
    yield "before temperature", YES[found.untempered], "" if found.untempered else "samples are drawn at 1.0"


def sampling(found: Capabilities) -> Iterator[Row]:
    """Yield the rows of samples."""
    several = found.max_n > 1
    number = f"up to {found.max_n}" if several else "ignored or rejected"
    yield "n", number, "several samples per request" if several else ONE_EACH
    differ = found.distinct_samples
    yield "samples of one request differ", YES[differ], "" if differ else ONE_EACH
    unseeded = "" if found.seed else "a repeated run differs, unless its responses are cached"
    yield "same seed, same sample", YES[found.seed], unseeded
    cutoffs = "" if found.unrestricted_sampling else "the server's own cut-offs apply"
    yield "unrestricted sampling (top_k, min_p)", YES[found.unrestricted_sampling], cutoffs
    if found.logprobs_format is not None:
        end_score = "a one-line grammar shows it" if found.grammar == "gbnf" else "the end is scored by a request"
        stop = {"shown": "", "hidden": end_score, "ignored": "samples run to the token limit"}
        yield "stop", found.stop, stop[found.stop]


def prefixes(found: Capabilities) -> Iterator[Row]:
    """Yield the rows of prompts and partial outputs."""
    if found.chat:
        whole_only = "" if found.continuation else "complete outputs only, closed by the constraint; no beam"
        yield "continues an assistant prefix", found.continuation or "no", whole_only
        return
    as_text = "" if found.prompt_ids else "prefixes are sent as text and tokenized again"
    yield "prompts as token ids", YES[found.prompt_ids], as_text
    yield "lists of prompts", YES[found.prompt_lists], lists_consequence(found)
    yield "echo", YES[found.echo], "" if found.echo else "texts are scored token by token"
    yield "max_tokens 0", YES[found.max_tokens_zero], ""
    yield "tokenizer", found.tokenizer or "no", "" if found.tokenizer else "prompt lengths are estimated"


def lists_consequence(found: Capabilities) -> str:
    """Return what it means that the server accepts lists of prompts or not."""
    if found.prompt_lists and found.slots:
        return "not used: each slot would process the prompt"
    return "many prefixes per request" if found.prompt_lists else "one request per prefix"


def grammar_use(found: Capabilities) -> str:
    """Return when the server's grammar is used."""
    if found.grammar is None:
        return ""
    return "--server-grammar" if found.logprobs_format else "used, unless --no-server-grammar"


def request_fields(found: Capabilities) -> Iterator[Row]:
    """Yield a row for each deviation from the usual request fields."""
    fields = found.fields
    if fields.limit != "max_tokens":
        consequence = "" if fields.limit else "only the server limits the length of outputs"
        yield "field of the length limit", fields.limit or "none", consequence
    if fields.omitted:
        yield "rejected fields", ", ".join(fields.omitted), "not sent"
    if fields.extra_tokens:
        yield "reasoning before the output", "yes", f"up to {fields.extra_tokens} more tokens per output"
    if fields.effort is not None:
        yield "reasoning_effort", fields.effort, "sent with every request"
