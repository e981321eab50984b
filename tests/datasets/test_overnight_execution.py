"""The semantics of the Overnight language, function by function, over a small world.

Ann is 30, Bob 9 and 30, Cy 10.5; Dee has no age. Ann and Cy are VIPs. Ann's friends are Bob (twice) and Cy, Bob's
friend is Cy, Dee's are Ann and Dee. Ann and Bob wake between 7:00 and 7:59.
"""

import pytest

from fewparse.datasets.overnight import executor
from fewparse.datasets.overnight.executor import Denotation, denote, execute
from fewparse.datasets.overnight.values import Number
from fewparse.datasets.overnight.world import WORLDS, World, load_world
from fewparse.errors import ExecutionError, UnknownName
from support.overnight_small import PEOPLE, SMALL_WORLD

CITIES = "(call getProperty (call singleton en.city) (string !type))"
NOBODY = f"(call filter {PEOPLE} (string age) (string =) (number 99 en.year))"
NULL = f"(call superlative {NOBODY} (string max) (string age))"
BAD = "(call nonsense)"
TEN = "(number 10 en.year)"


def text(inner: str, world: World = SMALL_WORLD) -> str:
    return denote(f"(call listValue {inner})", world).text


def people(inner: str) -> str:
    """Return the short names of the people in the denotation of a program."""
    denoted = text(inner)
    return denoted.replace("(name en.person.", "").removeprefix("(list").replace(")", "").strip() or denoted


def reason(inner: str) -> str | None:
    return denote(f"(call listValue {inner})", SMALL_WORLD).error


def age(sign: str, reference: str) -> str:
    return f"(call filter {PEOPLE} (string age) (string {sign}) {reference})"


@pytest.mark.parametrize(
    "program", ["", " ", "(", ")", "a b", "(call listValue a.b) x", "()", "(())", "foo(", "x"]
)
def test_a_text_that_is_not_one_listvalue_expression_is_an_error(program: str) -> None:
    assert denote(program, SMALL_WORLD).text == "error"


def test_any_ascii_whitespace_separates_atoms() -> None:
    assert denote("(call\tlistValue\r\n(number\x0b1\fu))", SMALL_WORLD).text == "(list (number 1 u))"
    assert denote("( call listValue( string a ) )", SMALL_WORLD).text == "(list (string a))"
    assert denote("(call listValue en.a.b\u00a0c)", SMALL_WORLD).text == "(list (name en.a.b\u00a0c))"


@pytest.mark.parametrize(
    "form",
    [
        *("(string)", "(string a b)", "(string (a))", "(number)", "(date 2015 1)", "(time 1)", "(call)"),
        *("(call (f) x)", "(lambda x)", "(lambda x (var x))", "(var x)", "(var)", "(var a b)", "(foo x)", "()"),
        *("(boolean true)", "(list en.city.rome)", "(name en.city.rome)", "((string a) b)", "(call nonsense a.b)"),
        *(
            "((lambda x) a.b)",
            "((lambda x (var x)))",
            "((lambda x (var x)) a.b a.b)",
            "((lambda (x) (var x)) a.b)",
        ),
        *("((lambda x (string (var x))) age)", "((lambda f (call (var f) (string p))) reverse)"),
        "(((lambda x (lambda y (var x))) a.b) c.d)",
    ],
)
def test_a_malformed_expression_is_an_error_only_if_it_is_evaluated(form: str) -> None:
    assert text(form) == "error"
    assert text(f"((lambda unused a.b) {form})") == "(list (name a.b))"


@pytest.mark.parametrize(
    ("inner", "expected"),
    [
        ("(call foo a.b)", "unknown function `foo`"),
        ("(call getProperty en.city.rome (string age))", "en.city.rome has no property `age`"),
        ("(call getProperty en.person.bill (string age))", "en.person.bill does not exist"),
        ("(call getProperty en.person.ann (string rent))", "unknown property `rent`"),
        ("(call filter a.b)", "`filter` takes 2 or 4 arguments, found 1"),
        ("(call singleton (string a))", "expected a single value, found the string `a`"),
        ("(var x)", "unbound variable `x`"),
        (f"(call {'f' * 100})", f"unknown function `{'f' * 60}…`"),
    ],
)
def test_an_error_has_a_reason(inner: str, expected: str) -> None:
    assert reason(inner) == expected


class TestLambdas:
    def test_the_argument_replaces_every_occurrence_of_the_variable(self) -> None:
        assert (
            people(f"((lambda s (call filter (var s) (string friend) (string =) (var s))) {PEOPLE})")
            == "ann bob dee"
        )

    def test_an_unused_argument_is_not_evaluated(self) -> None:
        assert text(f"((lambda x (number 1)) {BAD})") == "(list (number 1))"
        assert text(f"((lambda x (var x)) {BAD})") == "error"

    def test_an_inner_lambda_shadows_an_outer_one_of_the_same_name(self) -> None:
        assert text("((lambda x ((lambda x (var x)) (number 1))) (number 2))") == "(list (number 1))"
        assert text("((lambda x ((lambda x (var x)) (var x))) (number 2))") == "(list (number 2))"

    def test_the_variables_of_an_argument_are_resolved_in_its_own_scope(self) -> None:
        program = "((lambda x ((lambda y ((lambda x (var y)) (number 3))) (var x))) (number 1))"
        assert text(program) == "(list (number 1))"

    def test_a_free_variable_of_an_argument_is_captured_at_the_place_of_substitution(self) -> None:
        assert text("((lambda x ((lambda y (var x)) (number 1))) (var y))") == "(list (number 1))"
        assert text("((lambda x (var x)) (var x))") == "error"

    def test_an_argument_captured_twice_has_two_values(self) -> None:
        one, two = (f"((lambda y (call singleton (var x))) (number {number}))" for number in (1, 2))
        assert text(f"((lambda x (call concat {one} {two})) (var y))") == "(list (number 1) (number 2))"

    def test_a_variable_bound_to_a_lambda_can_be_applied(self) -> None:
        assert text("((lambda f ((var f) (number 1))) (lambda x (var x)))") == "(list (number 1))"
        assert (
            text("((lambda f ((lambda g ((var g) (number 1))) (var f))) (lambda x (var x)))")
            == "(list (number 1))"
        )
        assert text("((lambda f ((var f) (number 1))) (number 2))") == "error"

    def test_a_variable_may_be_bound_to_a_string(self) -> None:
        assert people(f"((lambda p (call filter {PEOPLE} (var p))) (string vip))") == "ann cy"


class TestDenotation:
    @pytest.mark.parametrize("program", [PEOPLE, "en.person.ann", "(string a)", f"(call .size {PEOPLE})", NULL])
    def test_a_program_without_an_outermost_listvalue_is_an_error(self, program: str) -> None:
        denotation = denote(program, SMALL_WORLD)
        assert denotation.error == "the outermost call must be `listValue`"

    @pytest.mark.parametrize(
        "program", ["((lambda s (call listValue (var s))) {0})", "((lambda s (var s)) (call listValue {0}))"]
    )
    def test_listvalue_may_be_called_in_a_lambda(self, program: str) -> None:
        assert denote(program.format("a.b"), SMALL_WORLD).text == "(list (name a.b))"

    @pytest.mark.parametrize("function", ["singleton", "ensureNumericEntity", ".size"])
    def test_a_function_of_a_listvalue_is_not_a_denotation(self, function: str) -> None:
        assert denote(f"(call {function} (call listValue (number 1)))", SMALL_WORLD).text == "error"

    def test_a_listvalue_is_a_list_to_other_functions(self) -> None:
        assert people(f"(call filter (call listValue {PEOPLE}) (string vip))") == "ann cy"
        assert text("(call listValue (call listValue (number 1)))") == "(list (number 1))"
        assert text("(call ensureNumericEntity (call listValue (number 1)))") == "(list (number 1))"

    def test_listvalue_accepts_a_string_and_a_size(self) -> None:
        assert text("(string age)") == "(list (string age))"
        assert text(f"(call .size {PEOPLE})") == "(list (number 4 count))"

    def test_an_empty_list_is_a_denotation(self) -> None:
        assert denote(f"(call listValue {NOBODY})", SMALL_WORLD) == Denotation(())
        assert text(NOBODY) == "(list)"

    def test_elements_are_sorted_by_their_text_and_may_repeat(self) -> None:
        lists = "(call concat (call concat (number 3) (number 10)) (call concat (number 3) (number -1)))"
        assert text(lists) == "(list (number -1) (number 10) (number 3) (number 3))"

    def test_a_string_in_a_list_has_no_type_and_is_not_a_known_value(self) -> None:
        strings = "(call listValue (string friend))"
        assert text(f"(call getProperty {strings} (string !type))") == "error"
        assert text(f"(call ensureNumericEntity {strings})") == "error"
        assert text(f"(call concat {strings} {PEOPLE})") == "error"
        assert text(f"(call filter {strings} (string vip))") == "(list)"
        assert text(f"(call .size {strings})") == "(list (number 1 count))"


class TestGetProperty:
    def test_the_values_are_distinct(self) -> None:
        assert people("(call getProperty en.person.ann (string friend))") == "bob cy"
        assert people(f"(call getProperty {PEOPLE} (string friend))") == "ann bob cy dee"

    def test_no_values_at_all_is_an_error_but_one_object_may_have_none(self) -> None:
        assert text("(call getProperty en.person.dee (string age))") == "error"
        assert text(f"(call getProperty {NOBODY} (string age))") == "error"
        both = "(call concat en.person.dee en.person.cy)"
        assert text(f"(call getProperty {both} (string age))") == "(list (number 10.500 en.year))"

    def test_reverse_properties_apply_to_entities_and_numbers(self) -> None:
        assert people("(call getProperty en.person.cy (call reverse (string friend)))") == "ann bob"
        assert people("(call getProperty (number 30 en.year) (string !age))") == "ann bob"
        assert text("(call getProperty (number 30) (string !age))") == "error"
        assert (
            text("(call getProperty en.person.ann (call reverse (string !city)))") == "(list (name en.city.rome))"
        )

    def test_the_signature_of_type_is_taken_from_the_data(self) -> None:
        assert text("(call getProperty en.person.ann (string type))") == "(list (name en.person))"
        assert text("(call getProperty en.city.rome (string type))") == "error"
        assert text(CITIES) == "(list (name en.city.oslo) (name en.city.rome))"

    def test_a_string_or_a_size_has_no_properties(self) -> None:
        assert text("(call getProperty (string a) (string !type))") == "error"
        assert text(f"(call getProperty (call .size {PEOPLE}) (string !type))") == "error"


class TestDomain:
    def test_it_is_every_entity_of_the_type_of_the_first_argument(self) -> None:
        assert people("(call domain (string age))") == "ann bob cy dee"
        assert text("(call domain (string unused))") == text(PEOPLE)

    def test_the_property_may_be_a_reverse_one(self) -> None:
        assert text("(call domain (string !city))") == text(CITIES)
        assert text("(call domain (string !age))") == "error"

    def test_an_unknown_property_is_an_error(self) -> None:
        assert text("(call domain (string nonsense))") == "error"


class TestFilter:
    def test_one_equal_value_is_enough_and_units_must_agree(self) -> None:
        assert people(age("=", "(number 30 en.year)")) == "ann bob"
        assert text(age("=", "(number 30)")) == "error"

    def test_unequal_means_that_no_value_is_equal_which_holds_without_values(self) -> None:
        assert people(age("!=", "(number 30 en.year)")) == "cy dee"

    @pytest.mark.parametrize(
        ("sign", "expected"), [("<", "bob"), ("<=", "bob"), (">", "ann bob cy"), (">=", "ann bob cy")]
    )
    def test_inequalities_hold_if_they_hold_for_some_value(self, sign: str, expected: str) -> None:
        assert people(age(sign, TEN)) == expected

    def test_inequalities_hold_if_they_hold_for_some_reference(self) -> None:
        assert people(age("<", "(call concat (number 1 en.year) (number 11 en.year))")) == "bob cy"
        assert people(age(">", "(call concat (number 20 en.year) (number 99 en.year))")) == "ann bob"

    def test_no_comparison_with_an_empty_list_holds(self) -> None:
        empty = f"(call filter {CITIES} (string !city) (string =) en.person.dee)"
        assert text(f"(call filter {PEOPLE} (string city) (string <) {empty})") == "error"
        assert text(f"(call filter {PEOPLE} (string age) (string <) {empty})") == "(list)"
        assert people(f"(call filter {PEOPLE} (string city) (string !=) {empty})") == "ann bob cy dee"

    def test_only_the_hour_of_a_time_is_compared(self) -> None:
        assert people(f"(call filter {PEOPLE} (string wakes) (string >=) (time 7 59))") == "ann bob cy"
        assert text(f"(call filter {PEOPLE} (string wakes) (string <) (time 7 59))") == "(list)"

    def test_a_year_is_less_than_its_days(self) -> None:
        assert people(f"(call filter {PEOPLE} (string born) (string >) (date 2004 -1 -1))") == "bob cy"
        assert people(f"(call filter {PEOPLE} (string born) (string =) (date 2004 -1 -1))") == "ann"

    def test_an_unknown_sign_never_holds(self) -> None:
        assert text(age("~", TEN)) == "(list)"

    def test_with_two_arguments_the_reference_is_true(self) -> None:
        assert people(f"(call filter {PEOPLE} (string vip))") == "ann cy"
        assert text(f"(call filter {PEOPLE} (string age))") == "error"

    def test_a_reference_may_be_an_unknown_entity_but_a_filtered_one_may_not(self) -> None:
        assert text(f"(call filter {PEOPLE} (string city) (string =) en.city.rom)") == "(list)"
        assert text("(call filter (call singleton en.person.an) (string city) (string =) en.city.rome)") == "error"

    def test_values_that_are_not_entities_are_skipped(self) -> None:
        assert text(f"(call filter (call singleton (number 5)) (string age) (string =) {TEN})") == "(list)"

    def test_an_unknown_property_is_an_error_only_if_it_is_looked_up(self) -> None:
        assert text(f"(call filter {NOBODY} (string nonsense) (string =) {NOBODY})") == "(list)"
        assert text(f"(call filter {NOBODY} (string nonsense) (string =) {TEN})") == "error"
        assert text(f"(call filter {PEOPLE} (string nonsense) (string =) {NOBODY})") == "error"

    def test_repeated_entities_are_kept(self) -> None:
        twice = f"(call concat {PEOPLE} (call singleton en.person.ann))"
        assert people(f"(call filter {twice} (string vip))") == "ann ann cy"

    def test_the_argument_kinds_are_checked(self) -> None:
        assert text("(call filter en.person.ann (string vip))") == "error"
        assert text(f"(call filter {PEOPLE} (string vip) (string =))") == "error"
        assert text(f"(call filter {PEOPLE} (string city) (string =) (string rome))") == "error"

    def test_entities_have_no_degree_to_compare(self) -> None:
        assert text(f"(call filter {PEOPLE} (string city) (string <) en.city.rome)") == "error"
        assert text(f"(call filter {NOBODY} (string city) (string <) en.city.rome)") == "(list)"


class TestSuperlative:
    def test_ties_are_kept_and_entities_without_values_dropped(self) -> None:
        assert people(f"(call superlative {PEOPLE} (string max) (string age))") == "ann bob"
        assert people(f"(call superlative {PEOPLE} (string min) (string age))") == "bob"

    def test_a_first_entity_without_values_is_the_only_result(self) -> None:
        first = "(call concat en.person.dee en.person.ann)"
        assert people(f"(call superlative {first} (string max) (string age))") == "dee"

    def test_any_other_mode_means_min(self) -> None:
        assert people(f"(call superlative {PEOPLE} (string best) (string age))") == "bob"

    def test_entity_values_have_no_superlative(self) -> None:
        assert text(f"(call superlative {PEOPLE} (string max) (string city))") == "error"

    def test_the_superlative_of_an_empty_list_is_null_which_is_an_error_to_use(self) -> None:
        assert text(NULL) == "error"
        assert text(f"(call .size {NULL})") == "error"
        assert text(f"(call concat {NULL} {NULL})") == "error"
        assert text(f"(call superlative {NOBODY} (string max) (string nonsense))") == "error"


class TestCounting:
    def test_repeated_values_are_counted(self) -> None:
        assert people(f"(call countSuperlative {PEOPLE} (string max) (string friend))") == "ann"
        assert people(f"(call countComparative {PEOPLE} (string friend) (string =) (number 3))") == "ann"

    def test_no_values_count_as_zero(self) -> None:
        assert people(f"(call countSuperlative {PEOPLE} (string min) (string friend))") == "cy"
        assert people(f"(call countComparative {PEOPLE} (string friend) (string <) (number 1 en.cm))") == "cy"

    def test_only_restrictors_are_counted(self) -> None:
        restrictors = "(call singleton en.person.cy)"
        assert people(f"(call countSuperlative {PEOPLE} (string max) (string friend) {restrictors})") == "ann bob"
        assert (
            people(f"(call countComparative {PEOPLE} (string friend) (string >=) (number 1) {restrictors})")
            == "ann bob"
        )
        assert text(f"(call countSuperlative {PEOPLE} (string max) (string friend) {CITIES})") == "error"

    def test_null_restrictors_count_all_values_and_empty_ones_none(self) -> None:
        assert people(f"(call countSuperlative {PEOPLE} (string max) (string friend) {NULL})") == "ann"
        assert (
            people(f"(call countComparative {PEOPLE} (string friend) (string >) (number 1) {NULL})") == "ann dee"
        )
        assert (
            people(f"(call countSuperlative {PEOPLE} (string max) (string friend) {NOBODY})") == "ann bob cy dee"
        )

    def test_restrictors_must_be_a_list(self) -> None:
        assert text(f"(call countSuperlative {PEOPLE} (string max) (string friend) en.person.cy)") == "error"
        assert (
            text(f"(call countComparative {PEOPLE} (string friend) (string =) (number 1) en.person.cy)") == "error"
        )

    def test_numeric_values_cannot_be_counted_but_booleans_can(self) -> None:
        assert text(f"(call countSuperlative {PEOPLE} (string max) (string age))") == "error"
        assert people(f"(call countSuperlative {PEOPLE} (string max) (string vip))") == "ann cy"

    @pytest.mark.parametrize("sign", ["!=", "~"])
    def test_an_unknown_comparison_is_an_error_unless_the_list_is_empty(self, sign: str) -> None:
        program = "(call countComparative {0} (string friend) (string {1}) (number 2))"
        assert text(program.format(PEOPLE, sign)) == "error"
        assert text(program.format(NOBODY, sign)) == "(list)"

    @pytest.mark.parametrize(
        "threshold", ["(call singleton (number 2))", "en.person.ann", "(date 2 2 2)", "(string 2)"]
    )
    def test_the_threshold_is_one_number(self, threshold: str) -> None:
        assert text(f"(call countComparative {PEOPLE} (string friend) (string =) {threshold})") == "error"

    def test_properties_are_checked_even_for_an_empty_list(self) -> None:
        assert text(f"(call countComparative {NOBODY} (string nonsense) (string =) (number 2))") == "error"
        assert text(f"(call countSuperlative {NOBODY} (string max) (string friend))") == "error"


class TestConcat:
    def test_two_values_or_two_lists_are_concatenated(self) -> None:
        assert people("(call concat en.person.cy en.person.ann)") == "ann cy"
        assert (
            text(f"(call .size (call concat {PEOPLE} (call singleton en.person.ann)))")
            == "(list (number 5 count))"
        )

    @pytest.mark.parametrize(
        "pair",
        [
            f"en.person.ann {PEOPLE}",
            f"{PEOPLE} en.person.ann",
            "en.person.ann en.city.rome",
            "(number 1) (number 2 en.cm)",
            "en.person.ann en.person.ann",
            f"{PEOPLE} {PEOPLE}",
            f"{NOBODY} {NOBODY}",
            "(string a) (string b)",
            "dotless other",
        ],
    )
    def test_mixed_kinds_mixed_types_and_equal_arguments_are_errors(self, pair: str) -> None:
        assert text(f"(call concat {pair})") == "error"

    def test_lists_with_the_same_elements_in_another_order_are_concatenated(self) -> None:
        one, two = "(call concat en.person.ann en.person.bob)", "(call concat en.person.bob en.person.ann)"
        assert people(f"(call concat {one} {two})") == "ann ann bob bob"

    def test_an_empty_list_can_be_concatenated_with_any_other(self) -> None:
        assert text(f"(call concat {NOBODY} (call singleton dotless))") == "(list (name dotless))"


class TestNumbers:
    def test_a_property_is_numeric_by_its_signature(self) -> None:
        assert text("(call ensureNumericProperty (string born))") == "(list (string born))"
        assert text("(call ensureNumericProperty (string city))") == "error"
        assert text("(call ensureNumericProperty (string !age))") == "error"
        assert text("(call ensureNumericProperty (string nonsense))") == "error"

    def test_a_list_is_numeric_by_its_first_element(self) -> None:
        assert text(f"(call ensureNumericEntity {TEN})") == "(list (number 10 en.year))"
        assert text(f"(call ensureNumericEntity {PEOPLE})") == "error"
        assert text(f"(call ensureNumericEntity {NOBODY})") == "error"

    def test_only_the_first_element_must_be_numeric(self) -> None:
        data = {"properties": {"p": ["t", "en.date"]}, "objects": {"t.x": {"p": ["(date 1 1 1)", "t.x"]}}}
        mixed = "(call ensureNumericEntity (call getProperty t.x (string p)))"
        assert text(mixed, World.from_data(data)) == "(list (date 1 1 1) (name t.x))"
        data["objects"] = {"t.x": {"p": ["t.x", "(date 1 1 1)"]}}
        assert text(mixed, World.from_data(data)) == "error"

    def test_aggregates_of_a_property_are_over_distinct_values(self) -> None:
        ages = f"(call getProperty {PEOPLE} (string age))"
        assert text(f"(call aggregate (string sum) {ages})") == "(list (number 49.500 en.year))"
        assert text(f"(call aggregate (string avg) {ages})") == "(list (number 16.500 en.year))"

    def test_an_aggregate_has_the_unit_of_the_first_number(self) -> None:
        data = {"properties": {"p": ["t", "u"]}, "objects": {"t.x": {"p": ["(number 1 b)", "(number 2 a)"]}}}
        mixed = "(call aggregate (string sum) (call getProperty t.x (string p)))"
        assert text(mixed, World.from_data(data)) == "(list (number 3 b))"

    @pytest.mark.parametrize(
        "arguments",
        [
            f"(string sum) {NOBODY}",
            f"(string sum) {PEOPLE}",
            f"(string max) (call singleton {TEN})",
            f"(string sum) {TEN}",
            "(string sum) (call concat (number 1e308) (number 1.1e308))",
        ],
    )
    def test_other_aggregates_are_errors(self, arguments: str) -> None:
        assert text(f"(call aggregate {arguments})") == "error"

    def test_sums_are_computed_from_left_to_right_in_doubles(self) -> None:
        numbers = "(call concat (call concat (number 0.1) (number 0.2)) (call concat (number 0.3) (number -0.6)))"
        found = denote(f"(call listValue (call aggregate (string sum) {numbers}))", SMALL_WORLD)
        assert found.values == (Number(0.1 + 0.2 + 0.3 - 0.6),)

    def test_only_listvalue_accepts_a_size(self) -> None:
        size = f"(call .size {PEOPLE})"
        for function in ("singleton", "ensureNumericEntity", ".size", "reverse"):
            assert text(f"(call {function} {size})") == "error"
        assert text("(call .size en.person.ann)") == "error"
        assert text(f"(call .size {NOBODY})") == "(list (number 0 count))"


def test_singleton_needs_a_value_which_may_be_unknown() -> None:
    assert text("(call singleton en.person.nobody)") == "(list (name en.person.nobody))"
    assert text(f"(call singleton {PEOPLE})") == "error"
    assert text("(call singleton (string a))") == "error"


def test_reverse_needs_a_string_which_may_be_an_unknown_property() -> None:
    assert text("(call reverse (string nonsense))") == "(list (string !nonsense))"
    assert text("(call reverse (string !!p))") == "(list (string !p))"
    assert text("(call reverse (string !))") == "(list (string ))"
    assert text("(call reverse age)") == "error"


@pytest.mark.parametrize("name", WORLDS)
def test_each_world_has_an_executor_with_its_name(name: str) -> None:
    entity = load_world(name).facts[0].entity
    program = f"(call listValue {entity.id})"
    assert getattr(executor, name)(program) == execute(name, program) == f"(list (name {entity.id}))"


def test_execute_raises_an_error_with_its_reason() -> None:
    with pytest.raises(ExecutionError, match="unknown function `foo`"):
        executor.blocks("(call listValue (call foo))")
    with pytest.raises(UnknownName):
        execute("nowhere", "(call listValue a.b)")
