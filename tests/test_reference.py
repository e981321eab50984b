"""The pages of docs/reference that are made from the code are up to date."""

from reference_pages import main


def test_the_reference_is_the_one_of_the_code() -> None:
    main(check=True)  # exits with a message that says what to do
