"""The protocol of a constraint kind, and the table of kinds."""

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar

from fewparse.constrain.state import Constraint
from fewparse.errors import UsageError
from fewparse.example import Target
from fewparse.grammar.rules import Grammar
from fewparse.grammar.synchronous import SynchronousGrammar
from fewparse.registry import Registry
from fewparse.vocabulary import Vocabulary

if TYPE_CHECKING:
    from fewparse.domains.domain import Domain
    from fewparse.domains.schema import ConstraintTable


class ConstraintKind(ABC):
    """Defines which outputs of a domain are well-formed.

    Only `build` is required. `table` is a subclass of `ConstraintTable` where the kind has settings of its own in
    domain.toml.
    """

    table: ClassVar["type[ConstraintTable] | None"] = None
    constrains: ClassVar[bool] = True
    """Whether some outputs are ill-formed."""
    finite: ClassVar[bool] = False
    """Whether the outputs are the finite set `Domain.known_outputs`."""
    can_copy: ClassVar[bool] = False
    """Whether text can be required to be copied from the utterance."""
    needs_examples: ClassVar[bool] = False
    """Whether the constraint is made from the examples."""

    def __init__(self, domain: "Domain") -> None:
        self.domain = domain
        self.settings = domain.table.constraint

    @abstractmethod
    def build(self, vocabulary: Vocabulary, target: Target, lead: str, utterance: str) -> Constraint:
        """Return the constraint on `lead` + output for an utterance, over the tokens of a model."""

    @property
    def depends_on_utterance(self) -> bool:
        """Whether `build` gives another constraint for another utterance."""
        return False

    @property
    def copied_rules(self) -> tuple[str, ...]:
        """The grammar rules whose text is copied from the utterance."""
        return ()

    @property
    def synchronous(self) -> bool:
        """Whether there is a grammar that pairs canonical utterances with programs."""
        return False

    @property
    def grammar(self) -> Grammar | SynchronousGrammar | None:
        """The grammar, where there is one."""
        return None

    def gbnf(self, target: Target, lead: str, utterance: str) -> str:
        """Return the constraint in the notation of llama.cpp, for servers that constrain samples themselves."""
        raise UsageError(
            f"the constraint `{self.settings.kind}` of the domain {self.domain.name} cannot be sent to a server",
            "Omit --server-grammar.",
        )

    def check(self, target: Target) -> None:  # noqa: B027 -- optional
        """Raise an error if the constraint cannot be built for a target."""


CONSTRAINT_KINDS: Registry[type[ConstraintKind]] = Registry(
    "constraint",
    {
        "grammar": "fewparse.domains.constraints.grammar:GrammarConstraint",
        "induced": "fewparse.domains.constraints.grammar:InducedConstraint",
        "trie": "fewparse.domains.constraints.finite:FiniteConstraint",
        "none": "fewparse.domains.constraints.none:NoConstraint",
    },
)
