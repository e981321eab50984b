"""fewparse turns a handful of examples and a grammar into a semantic parser."""

from fewparse.domains.domain import Domain
from fewparse.domains.load import load_domain
from fewparse.errors import FewparseError
from fewparse.example import Candidate, Example, Parse
from fewparse.lm.load import open_model
from fewparse.lm.model import LanguageModel
from fewparse.lm.usage import Usage
from fewparse.parser import Parser

__version__ = "0.1.0"
__all__ = [
    "Candidate",
    "Domain",
    "Example",
    "FewparseError",
    "LanguageModel",
    "Parse",
    "Parser",
    "Usage",
    "load_domain",
    "open_model",
]
