"""A constraint to a finite set of outputs."""

from fewparse.constrain.state import Constraint
from fewparse.constrain.trie import Trie
from fewparse.domains.constraints.kind import ConstraintKind
from fewparse.example import Target
from fewparse.grammar.export.notations import to_gbnf
from fewparse.grammar.rules import Grammar, Text
from fewparse.vocabulary import Vocabulary


class FiniteConstraint(ConstraintKind):
    """`kind = "trie"`: the outputs of the examples, or of the file `strings`."""

    finite = True
    needs_examples = True

    def build(self, vocabulary: Vocabulary, target: Target, lead: str, utterance: str) -> Constraint:
        """Return a trie of the outputs."""
        return Trie((output.output(target) for output in self.domain.known_outputs), vocabulary, lead)

    def gbnf(self, target: Target, lead: str, utterance: str) -> str:
        """Return the outputs as alternatives of one rule."""
        texts = dict.fromkeys(output.output(target) for output in self.domain.known_outputs)
        return to_gbnf(Grammar({"start": tuple((Text(text),) for text in texts)}, "start").with_prefix(lead))
