"""What a caller may choose of a parse; whatever is left out, the domain decides."""

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from fewparse.domains.domain import Domain
from fewparse.errors import UnknownName, UsageError
from fewparse.example import TARGETS, Target
from fewparse.lm.adapter import Adapter, read_adapter
from fewparse.lm.load import EMBEDDED
from fewparse.retrieve.arrange import ORDERS, Order
from fewparse.retrieve.retriever import RETRIEVERS
from fewparse.search.settings import Decoder, Settings

NO_ADAPTER = "none"


@dataclass(frozen=True)
class Options:
    """The settled choices of a parser."""

    target: Target
    prompt: str
    examples: int
    order: Order
    retriever: str
    fold: bool
    constrained: bool
    server_grammar: bool
    rerank: float
    vote: bool
    n_best: int
    search: Settings
    adapter: Adapter | None

    @staticmethod
    def resolve(domain: Domain, model: str = "", **chosen: Any) -> "Options":
        """The domain's own settings, overridden by what was chosen (None = not chosen).

        `model` is the name of the model that will be asked: the domain's adapter is for the embedded one.
        """
        table = domain.table
        given = {name: value for name, value in chosen.items() if value is not None}
        target = given.get("target", table.target)
        if target not in TARGETS:
            raise UnknownName("target", target, TARGETS)
        adapter = choose_adapter(domain, target, model, given.pop("adapter", None))
        tuned = adapter.provenance if adapter else None
        own = table.search_for(adapted=tuned is not None)
        search: dict[str, Any] = {
            "decoder": own.decoder,
            "width": own.width,
            "temperature": own.temperature,
            "max_tokens": own.max_tokens[target],
            # A sample that nothing can cut is whole: branches of it would only be more samples, at a high price.
            "free_branching": given.get("constrained", True) and not given.get("server_grammar"),
        }
        search |= {name: given.pop(name) for name in SEARCH_OPTIONS if name in given}
        rest: dict[str, Any] = {
            "target": target,
            "prompt": tuned.prompt if tuned else table.prompt[target],
            "examples": 0 if tuned else table.retrieve.examples,
            "order": table.retrieve.order,
            "retriever": table.retrieve.retriever,
            "fold": True,
            "constrained": True,
            "server_grammar": False,
            "rerank": own.rerank,
            "vote": own.vote,
            "n_best": search["width"],
        }
        for name in given:
            if name not in rest:
                raise UnknownName("option", name, [*rest, *SEARCH_OPTIONS])
        options = Options(**(rest | given), search=Settings(**search), adapter=adapter)
        options.check()
        if options.vote and table.executor is None:
            raise UsageError("a vote needs an executor, and the domain has none", "Leave --vote out.")
        return options

    def describe(self) -> str:
        """The way to decode, in a few words."""
        width = {"beam": f" {self.search.width}", "speculative": f" W={self.search.width}", "greedy": ""}
        return f"{self.search.decoder}{width[self.search.decoder]}{'' if self.constrained else ', unconstrained'}"

    def check(self) -> None:
        """Refuse what makes no sense before anything is loaded."""
        if self.order not in ORDERS:
            raise UnknownName("order", self.order, ORDERS)
        if self.retriever not in RETRIEVERS:
            raise UnknownName("retriever", self.retriever, RETRIEVERS)
        if self.server_grammar and not (self.constrained and self.search.decoder == "speculative"):
            raise UsageError(
                "a server keeps samples to a grammar: that is for the speculative decoder, constrained",
                "Add --decoder speculative, or leave --server-grammar out.",
            )
        if self.examples < 0 or self.n_best < 1:
            raise UsageError("the number of examples is at least 0, and that of candidates at least 1")


def choose_adapter(domain: Domain, target: Target, model: str, asked: str | Path | None) -> Adapter | None:
    """The adapter that was asked for, or the domain's own where the embedded model speaks its language."""
    if asked == NO_ADAPTER:
        return None
    if asked is not None:
        named = read_adapter(Path(asked).expanduser())
        if named.provenance is not None and named.provenance.target != target:
            raise UsageError(
                f"{asked} was tuned for the target {named.provenance.target}, and {target} is asked for",
                f"Name the other target, --target {named.provenance.target}, or another adapter.",
            )
        return named
    path = domain.adapter_path(target)
    if model.partition(":")[0] != EMBEDDED or not domain.own_grammar or not path.exists():
        return None
    return read_adapter(path)


SEARCH_OPTIONS: tuple[Decoder | str, ...] = tuple(
    f.name for f in fields(Settings) if f.name not in ("stop", "grammar")
)
