"""Tables that fit a terminal."""

from fewparse.evaluate.plain_table import WIDTH, plain_table

HEADS = ["system", "accuracy (95% interval)", "exact match", "before reranking", "by vote", "top 5", "top 10"]
LONG = "no model: most similar canonical utterance, embedding"
TABLE = """\
system                     accuracy (95%  exact     before    by   top   top
                               interval)  match  reranking  vote     5    10
no model: most similar  0.50 (0.10-0.90)   0.50                   0.50  0.50
canonical utterance,
embedding
greedy                  0.93 (0.85-0.97)   0.93       0.85  0.92  0.99  1.00"""


def test_names_and_heads_are_wrapped_and_figures_are_not() -> None:
    rows = [[LONG, "0.50 (0.10-0.90)", "0.50", "", "", "0.50", "0.50"]]
    rows += [["greedy", "0.93 (0.85-0.97)", "0.93", "0.85", "0.92", "0.99", "1.00"]]
    shown = plain_table([HEADS, *rows], 76)
    assert shown == TABLE
    assert max(map(len, plain_table([HEADS, *rows]).splitlines())) <= WIDTH


def test_a_short_name_takes_no_more_room_than_it_needs() -> None:
    assert plain_table([["a", "b"], ["cc", "1"]]) == "a         b\ncc        1"
