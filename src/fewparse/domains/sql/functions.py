"""Functions that a query may call: they compute a value from their arguments, and do nothing else.

Functions that make long texts from short ones (`repeat`, `lpad`, `zeroblob`), read files or settings, wait, or act
on a server are left out.
"""

import re

AGGREGATES = """
    count sum avg min max total group_concat string_agg listagg median mode stddev stddev_pop stddev_samp
    variance var_pop var_samp bool_and bool_or every any_value first last arg_min arg_max min_by max_by quantile
    quantile_cont quantile_disc percentile_cont percentile_disc approx_distinct approx_count_distinct count_if
    countif corr covar_pop covar_samp product
"""
WINDOW = """
    row_number rank dense_rank percent_rank cume_dist ntile lag lead first_value last_value nth_value
"""
NUMBERS = """
    abs round ceil ceiling floor trunc sign sqrt cbrt power pow exp ln log log2 log10 mod degrees radians pi sin
    cos tan asin acos atan atan2 greatest least div
"""
TEXTS = """
    lower upper length len char_length character_length octet_length trim ltrim rtrim btrim substr substring left
    right replace instr strpos str_position position concat concat_ws reverse initcap starts_with ends_with
    contains split_part ascii unicode char chr hex like glob ilike regexp regexp_like regexp_matches similar_to
    translate printf format match soundex levenshtein
"""
TIMES = """
    date time datetime julianday strftime unixepoch timediff date_part datepart extract date_trunc
    timestamp_trunc date_diff datediff date_add date_sub date_str_to_date ts_or_ds_to_date ts_or_ds_to_timestamp
    age to_char to_date to_timestamp str_to_time str_to_date time_to_str strptime make_date make_timestamp
    timestamp_from_parts now today current_date current_time current_timestamp localtime localtimestamp year
    quarter month week day hour minute second day_of_month day_of_week day_of_week_iso dayofweek isodow
    day_of_year dayofyear week_of_year weekofyear dayname monthname last_day epoch to_days timestamp
    date_from_parts
"""
OTHERS = """
    coalesce ifnull nullif nvl iif if case cast try_cast typeof and or not between in exists is_null xor
    json_extract json_array_length json_type json_valid json_extract_scalar jsonb_extract_scalar -> ->> array
    array_agg list array_length cardinality is_nan is_inf isnan isinf
"""
READ_ONLY = "a query may only read"
SAFE_FUNCTIONS = frozenset(" ".join((AGGREGATES, WINDOW, NUMBERS, TEXTS, TIMES, OTHERS)).split())


def refused_function(name: str) -> str:
    """Return why a query that calls another function is refused."""
    return f"the function {name[:100]} is refused: it is not in the list of functions that only compute"


def not_a_query(sql: str) -> str:
    """Return why a statement is refused that is no query, by its first word."""
    first = re.search(r"[A-Za-z]+", re.sub(r"--[^\n]*|/\*.*?\*/", " ", sql, flags=re.DOTALL))
    word = first[0].upper()[:40] if first else ""
    return f"{word} is refused: {READ_ONLY}" if word not in ("", "SELECT", "WITH") else f"refused: {READ_ONLY}"
