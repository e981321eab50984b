"""Run the decoder of the settings, and complete an output that reached the length limit."""

from threading import Event as Flag

from fewparse.constrain.state import Constraint
from fewparse.errors import UsageError
from fewparse.events import Listener, ignore
from fewparse.lm.model import LanguageModel
from fewparse.lm.usage import Usage
from fewparse.prompt import Prompt
from fewparse.search.completion import complete
from fewparse.search.context import SearchContext
from fewparse.search.decoder import DECODERS
from fewparse.search.hypothesis import Hypothesis, ranked
from fewparse.search.settings import SearchSettings


def decode(
    model: LanguageModel,
    prompt: Prompt,
    constraint: Constraint,
    settings: SearchSettings,
    usage: Usage,
    emit: Listener = ignore,
    cancel: Flag | None = None,
) -> list[Hypothesis]:
    """Return finished hypotheses with distinct strings, best first.

    The list is empty if nothing finished and no completion was found at the length limit, which in paper mode is
    not looked for. `ParseCancelled` is raised before the next model call once `cancel` is set.
    """
    decoder = DECODERS[settings.decoder]
    if decoder.needs_logprobs and not model.supports_logprobs:
        raise UsageError(
            f"the decoder `{settings.decoder}` ranks by log-probabilities, and {model.name} reports none",
            "Use --decoder sampling.",
        )
    if decoder.needs_prefix and not model.supports_prefix:
        raise UsageError(
            f"the decoder `{settings.decoder}` continues partial outputs, and {model.name} cannot",
            "Use --decoder speculative.",
        )
    context = SearchContext(model, prompt, settings, usage, emit, cancel)
    found = ranked(decoder.search(context, [Hypothesis((), 0.0, constraint.start())]))
    if settings.paper:
        return [h for h in found if h.finished]
    if found and not found[0].finished:
        completed = complete(context, found[0], constraint)
        return [completed] if completed else []
    return found
