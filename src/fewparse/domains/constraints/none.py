"""No constraint."""

from fewparse.constrain.state import Constraint
from fewparse.constrain.unconstrained import Unconstrained
from fewparse.domains.constraints.kind import ConstraintKind
from fewparse.example import Target
from fewparse.vocabulary import Vocabulary


class NoConstraint(ConstraintKind):
    """`kind = "none"`: any text."""

    constrains = False

    def build(self, vocabulary: Vocabulary, target: Target, lead: str, utterance: str) -> Constraint:
        """Return the constraint that allows any text."""
        return Unconstrained(vocabulary, lead.encode())
