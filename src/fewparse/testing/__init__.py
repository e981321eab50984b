"""Laws that every implementation of an interface obeys. Run them on your own implementations with pytest:

@pytest.mark.parametrize("law", DATASET_LAWS, ids=lambda law: law.__name__)
def test_my_dataset(law, tmp_path):
    law(MY_DATASET, Path("tests/published_files"), tmp_path)
"""

from fewparse.testing.datasets import DATASET_LAWS

__all__ = ["DATASET_LAWS"]
