"""The laws of each protocol as plain functions, to be run on your own implementations.

    from fewparse.testing import CONSTRAINT_LAWS

    @pytest.mark.parametrize("law", CONSTRAINT_LAWS, ids=lambda law: law.__name__)
    def test_my_constraint(law):
        law(my_constraint)

A law raises `AssertionError` if it is violated.
"""

from fewparse.testing.constraints import CONSTRAINT_LAWS
from fewparse.testing.datasets import DATASET_LAWS
from fewparse.testing.models import MODEL_LAWS
from fewparse.testing.retrievers import RETRIEVER_LAWS

__all__ = ["CONSTRAINT_LAWS", "DATASET_LAWS", "MODEL_LAWS", "RETRIEVER_LAWS"]
