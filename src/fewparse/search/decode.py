"""The door to the decoders: from a prompt and a constraint to finished outputs, best first."""

from fewparse.constrain.state import Constraint
from fewparse.errors import UsageError
from fewparse.lm.model import LanguageModel
from fewparse.lm.usage import Usage
from fewparse.prompt import Prompt
from fewparse.search.beam import beam_search
from fewparse.search.completion import close
from fewparse.search.context import SearchContext
from fewparse.search.events import Listener, ignore
from fewparse.search.hypothesis import Hypothesis, ranked
from fewparse.search.settings import Settings
from fewparse.search.speculative import speculative_search


def decode(
    model: LanguageModel,
    prompt: Prompt,
    constraint: Constraint,
    settings: Settings,
    usage: Usage,
    emit: Listener = ignore,
) -> list[Hypothesis]:
    """Finished hypotheses, one a string, best first; none where even closing at the length limit failed."""
    if settings.decoder != "speculative" and not model.supports_prefix:
        raise UsageError(
            f"the decoder `{settings.decoder}` asks what follows the beginning of an output, which {model.name} "
            "cannot be asked",
            "Use --decoder speculative.",
        )
    search = speculative_search if settings.decoder == "speculative" else beam_search
    begin = [Hypothesis((), 0.0, constraint.start())]
    context = SearchContext(model, prompt, settings, usage, emit)
    found = ranked(search(context, begin))
    if found and not found[0].finished:
        closed = close(context, found[0], constraint)
        return [closed] if closed else []
    return found
