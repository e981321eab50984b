"""Laws that implementations of the protocols must satisfy, for use in the tests of your own implementations.

    import pytest
    from fewparse.testing import MODEL_LAWS

    @pytest.mark.parametrize("law", MODEL_LAWS, ids=lambda law: law.__name__)
    def test_my_model(law):
        law(MyModel())

A law is a plain function. It raises an `AssertionError` with a message if the implementation violates it.
"""

from fewparse.testing.models import MODEL_LAWS

__all__ = ["MODEL_LAWS"]
