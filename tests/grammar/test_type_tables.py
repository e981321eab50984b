"""Rules generated from type tables and English templates."""

import re
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewparse.errors import GrammarError
from fewparse.grammar.readers.csv_table import Table
from fewparse.grammar.readers.type_tables import TableRules, rules_from_tables
from support.data import SMCALFLOW

RELEASED = SMCALFLOW / "released-grammar"
released = pytest.mark.skipif(not RELEASED.is_dir(), reason="the released tables are not available")
EMPTY = "empty -> #e , #e"


def table_rules(types: str, templates: str | None = None) -> TableRules:
    return rules_from_tables([("types.csv", types)], None if templates is None else ("templates.csv", templates))


def rules(types: str, templates: str | None = None) -> list[str]:
    first, *rest = table_rules(types, templates).rules
    assert first == EMPTY
    return rest


def rejection_of(types: str, templates: str | None = None) -> GrammarError:
    with pytest.raises(GrammarError) as caught:
        table_rules(types, templates)
    return caught.value


def read_released() -> TableRules:
    types = [(name, (RELEASED / name).read_text()) for name in ("types.csv", "specialTypes.csv")]
    return rules_from_tables(types, ("templates.csv", (RELEASED / "templates.csv").read_text()))


class TestReleasedTables:
    @released
    def test_have_892_rules_including_the_rule_of_empty(self) -> None:
        result = read_released()
        assert len(result.rules) == len(set(result.rules)) == 892
        assert result.rules[0] == EMPTY

    @released
    def test_have_57_rules_of_functions_without_templates(self) -> None:
        result = read_released()
        assert len(result.untemplated) == sum(' -> "(call ' in rule for rule in result.rules) == 57

    @released
    def test_lose_a_function_and_fields_whose_types_nothing_produces(self) -> None:
        result = read_released()
        assert result.pruned_functions == ("AttendeeListHasRecipientWithType",)
        assert result.pruned_getters == ()
        assert set(result.pruned_fields) == {
            "Constraint[Event].reminder",
            "Constraint[Event].sensitivity",
            "Constraint[Email].importance",
        }

    @released
    def test_leave_eight_lambdas_and_the_literals_to_be_written_by_hand(self) -> None:
        result = read_released()
        defined = {rule.split(" -> ")[0] for rule in result.rules}
        outside_quotes = re.sub(r'"(?:\\.|[^"\\])*"', " ", "\n".join(result.rules))
        used = set(re.findall(r"(?<!#)\b[a-z]\w*", outside_quotes))
        undefined = used - defined
        assert len({name for name in undefined if name.startswith("lambda_")}) == 8
        assert {name for name in undefined if not name.startswith("lambda_")} == {
            "placefeature",
            "weatherquantifier",
        }

    @released
    def test_name_the_two_dates_of_an_all_day_event_in_the_order_of_the_template(self) -> None:
        [rule] = [rule for rule in read_released().rules if "EventAllDayDateUntilDate" in rule]
        assert rule == (
            'constraint_event_ -> constraint_event_ " all day " date " returning " date empty , '
            '" (EventAllDayDateUntilDate" " :endDate" date " :event" constraint_event_ '
            '" :startDate" date ")" empty'
        )


class TestFunctions:
    def test_with_an_upper_case_name_take_named_arguments_in_the_order_of_the_table(self) -> None:
        assert rules("Shift,Time,base: Time,by: Duration\n#D,Duration", "Shift,$by past $base") == [
            'time -> duration " past " time empty , " (Shift" " :base" time " :by" duration ")" empty'
        ]

    def test_without_a_template_are_called_by_name_and_with_a_lower_case_name_by_position(self) -> None:
        result = table_rules("plus,Number,x: Number,y: Number")
        assert result.rules[1:] == (
            'number -> "(call plus" " with " "x set to " number " and " "y set to " number ")" empty , '
            '" (plus" number number ")" empty',
        )
        assert result.untemplated == ("plus",)

    def test_without_a_template_and_without_arguments_are_called_by_name_alone(self) -> None:
        assert rules("Now,Time") == ['time -> "(call Now" ")" empty , " (Now" ")" empty']

    def test_whose_templates_are_all_empty_have_none(self) -> None:
        assert table_rules("Now,Time", "Now,,,").untemplated == ("Now",)

    def test_use_the_first_template_with_exactly_their_arguments(self) -> None:
        types = "Say,Text\nSay,Text,a: Text\nSay,Text,a: Text,b: Text"
        templates = "Say,$a,only $a,$b and $a,,nothing,,"
        assert [rule.split(" , ")[0] for rule in rules(types, templates)] == [
            "text -> #e empty",
            "text -> text empty",
            'text -> text " and " text empty',
        ]

    def test_may_have_templates_for_missing_overloads(self) -> None:
        assert rules("Now,Time", "Now,$zone now,now") == ['time -> "now" empty , " (Now" ")" empty']

    def test_repeat_an_argument_as_often_as_the_template_does(self) -> None:
        assert rules("F,T,a: T", "F,$a or $a")[0].startswith('t -> t " or " t empty ,')

    @pytest.mark.parametrize("name", ["Constraint.apply", "Lambda.construct", "Thing.known?", "List.Nil"])
    def test_may_have_a_dot_in_some_names(self, name: str) -> None:
        assert rules(f"{name},T", f"{name},said") == [f't -> "said" empty , " ({name}" ")" empty']

    def test_escape_their_terminals(self) -> None:
        assert rules("F,T", r"F,\"a\" \\ é") == [r't -> "\"a\" \\ é" empty , " (F" ")" empty']


class TestPlaceholders:
    def test_end_at_a_space_or_a_colon(self) -> None:
        types = "At,Time,hours: Number,minutes: Number\n#Number,Number"
        utterance = rules(types, "At,$hours:$minutes pm ")[0].split(" , ")[0]
        assert utterance == 'time -> number ":" number " pm " empty'

    def test_do_not_end_at_other_punctuation(self) -> None:
        assert "`$a,b` is not an argument" in rejection_of("F,T,a: T", r"F,$a\,b x").message


class TestGetters:
    def test_are_called_with_a_colon(self) -> None:
        types = "Event.start,DateTime,obj: Event\n#Event,Event"
        program = ' , " (:start" event ")" empty'
        assert rules(types) == ['datetime -> "start of " event empty' + program]
        assert rules(types, "Event.start,start time of $Event,ignored $x") == [
            'datetime -> "start time of " event empty' + program
        ]

    def test_take_the_type_of_the_object_from_their_name(self) -> None:
        types = "Constraint[Event].start,DateTime,obj: Other\n#C,Constraint[Event]"
        assert rules(types)[0].endswith('" (:start" constraint_event_ ")" empty')

    def test_called_item_belong_to_their_argument_and_have_no_template(self) -> None:
        templates = "item,item $t\nDynamic.item,the item of $Dynamic"
        assert rules("item,Event,t: Dynamic\n#D,Dynamic", templates) == [
            'event -> "item of " dynamic empty , " (:item" dynamic ")" empty'
        ]


class TestFields:
    TYPES = "Setter:C[E].name,C[E],C[E]: C[E],name: Text\n#Text,Text\nSetter:C[E].day,C[E],C[E]: C[E],day: Text"
    REST = "c_e__c_e__args"

    def test_follow_the_words_of_their_type_after_a_space(self) -> None:
        assert rules(self.TYPES, "C[E],event,called $name,$name $day") == [
            f'c_e_ -> "event" {self.REST} empty , " (C[E]" {self.REST} ")" empty',
            f"{self.REST} -> #e , #e",
            f'{self.REST} -> " " "called " text {self.REST} empty , " :name" text {self.REST} empty',
            f'{self.REST} -> " with day set to " text {self.REST} empty , " :day" text {self.REST} empty',
        ]

    def test_of_a_type_with_an_empty_template_follow_directly(self) -> None:
        assert rules(self.TYPES, "C[E],,called $name,$day") == [
            f'c_e_ -> {self.REST} empty , " (C[E]" {self.REST} ")" empty',
            f"{self.REST} -> #e , #e",
            f'{self.REST} -> "called " text {self.REST} empty , " :name" text {self.REST} empty',
            f'{self.REST} -> text {self.REST} empty , " :day" text {self.REST} empty',
        ]

    @pytest.mark.parametrize("templates", [None, "Other,x", "C[E],,"])
    def test_of_a_type_without_templates_are_worded_by_name(self, templates: str | None) -> None:
        first, _, name, _ = rules(self.TYPES, templates)
        assert first == f'c_e_ -> {self.REST} empty , " (C[E]" {self.REST} ")" empty'
        assert (
            name == f'{self.REST} -> " with name set to " text {self.REST} empty , " :name" text {self.REST} empty'
        )


class TestDeclarations:
    def test_have_no_rule_but_produce_their_type(self) -> None:
        result = table_rules(
            "#Number,Number\ntemperature,Lambda[Table_Number]\nF,T,n: Number,l: Lambda[Table_Number]"
        )
        assert len(result.rules) == 2
        assert result.pruned_types == ()

    def test_of_lambdas_have_no_rule_but_their_constructor_has(self) -> None:
        assert len(rules("f,Lambda[A],x: Nowhere\nLambda.construct,Lambda[A]")) == 1


class TestPruning:
    def test_continues_until_everything_left_can_be_built(self) -> None:
        result = table_rules("C,T3,a: T2\nB,T2,a: T1\nA,T1,a: T0\nT3.x,T4,o: T3\nSetter:S.f,S,S: S,f: T4\nKept,T5")
        assert result.pruned_functions == ("C", "B", "A")
        assert result.pruned_getters == ("T3.x",)
        assert result.pruned_fields == ("S.f",)
        assert result.pruned_types == ("T0", "T1", "T2", "T3", "T4")

    def test_keeps_a_type_with_a_remaining_producer(self) -> None:
        result = table_rules("A,T,a: Nothing\nB,T\nC,U,t: T")
        assert result.pruned_functions == ("A",)
        assert [rule.split(" -> ")[0] for rule in result.rules] == ["empty", "t", "u"]

    def test_keeps_a_type_that_has_lost_all_its_fields(self) -> None:
        types = "Setter:S.f,S,S: S,f: Nothing\nSetter:S.g,S,S: S,g: Thing\n#Thing,Thing\nF,T,s: S"
        result = table_rules(types, "S,an s,with $f,and $g")
        assert result.pruned_fields == ("S.f",)
        assert [rule.split(" -> ")[0] for rule in result.rules] == ["empty", "s", "s_s_args", "s_s_args", "t"]

    def test_needs_no_template_for_pruned_functions(self) -> None:
        assert rules("F,T,a: Nothing", "F,no placeholder") == []


class TestReading:
    def test_concatenates_several_tables(self) -> None:
        joined = rules_from_tables([("a.csv", "B,T"), ("b.csv", "A,T,u: U\nC,U")], None)
        assert joined == table_rules("B,T\nA,T,u: U\nC,U")

    def test_ignores_empty_rows_trailing_empty_cells_and_spaces_around_types(self) -> None:
        assert table_rules("\ufeff\n F , T , a:T ,, \r\n,,\n\n") == table_rules("F,T,a: T")

    def test_reads_quoted_cells_of_a_type_table(self) -> None:
        assert rules('"say ""hi""",T') == [r't -> "(call say \"hi\"" ")" empty , " (say \"hi\"" ")" empty']

    def test_keeps_a_backslash_in_a_type_table(self) -> None:
        assert r'" (a\\b"' in rules(r"a\b,T")[0]

    def test_keeps_spaces_and_escaped_commas_of_templates(self) -> None:
        assert rules("F,T,a: T", r"F,Yes\, $a \\ ,")[0].startswith(r't -> "Yes, " t " \\ " empty')

    @given(st.lists(st.lists(st.text(st.characters(codec="utf-8")), min_size=1), max_size=4))
    def test_recovers_any_quoted_cells(self, cells: list[list[str]]) -> None:
        written = [[*row, "end"] for row in cells]
        escaped = "\n".join(
            ",".join(f'"{cell.replace(chr(92), chr(92) * 2).replace(chr(34), chr(34) * 2)}"' for cell in row)
            for row in written
        )
        read = Table("t.csv", escaped, templates=True).rows()
        assert [[cell.text for cell in row] for row in read] == written

    @given(st.text(st.sampled_from('a,"\\\n\r$ :.[]#')), st.text(st.sampled_from('FT,"\\\n$ a')))
    def test_returns_rules_or_raises_a_grammar_error(self, types: str, templates: str) -> None:
        with suppress(GrammarError):
            assert table_rules(f"F,T,a: T\n{types}", templates).rules

    def test_handles_large_tables_and_long_cells(self) -> None:
        long = "x" * 1_000_000
        types = "".join(f"F{i},T{i},a: T{i - 1}\n" for i in range(20_000, 0, -1)) + "F0,T0,a: T0\n"
        assert len(rules(types, f"F0,{long} $a")) == 20_001
        assert len(table_rules(types.replace("F0,T0,a: T0\n", "")).pruned_functions) == 20_000


class TestMistakes:
    @pytest.mark.parametrize("types", ["F,T\nG", "F,T\nG,,a: T", "F,T\n,T"])
    def test_a_row_with_too_few_cells_is_rejected(self, types: str) -> None:
        error = rejection_of(types)
        assert "types.csv:2:1: a row needs a name and a return type" in error.message
        assert "name,returnType" in str(error.hint)

    @pytest.mark.parametrize("cell", ["T", "a:", ": T", "a b: T", "", '" "'])
    def test_a_cell_that_is_not_an_argument_is_rejected(self, cell: str) -> None:
        assert "types.csv:2:5: expected `arg: Type`" in rejection_of(f"F,T\nF,T,{cell},b: T").message

    def test_two_arguments_of_one_name_are_rejected(self) -> None:
        assert "two arguments called `a`" in rejection_of("F,T,a: T,a: T").message

    @pytest.mark.parametrize("types", ["F,4T", "F,T,a: T-U", "F,Été", "A.B.c,T", "F,_T", ".x,T"])
    def test_a_type_without_a_legal_name_is_rejected(self, types: str) -> None:
        error = rejection_of(types)
        assert "cannot be the name of a type" in error.message
        assert "letters" in str(error.hint)

    @pytest.mark.parametrize("types", ["Setter:S.f,S,f: T", "Setter:S.f,S", "Setter:S.f,S,S: S,f: T,g: T"])
    def test_a_setter_needs_its_type_and_its_field(self, types: str) -> None:
        assert "types.csv:1:1: a setter has two arguments" in rejection_of(types).message

    def test_item_needs_an_object(self) -> None:
        assert "`item` needs an argument" in rejection_of("item,T").message

    def test_an_overload_without_matching_template_is_reported_with_what_is_needed_and_found(self) -> None:
        error = rejection_of("F,T,a: T\nF,T,a: T,b: T", "\nF,one $a,nothing")
        assert "templates.csv:2:1: no template of `F` has exactly $a, $b" in error.message
        assert "types.csv:2" in str(error.hint)
        assert "Found: $a; no placeholder." in str(error.hint)

    def test_an_overload_without_arguments_needs_no_placeholder(self) -> None:
        assert "has exactly no placeholder" in rejection_of("F,T,a: T\nF,T", "F,one $a").message

    def test_a_misspelt_placeholder_is_reported(self) -> None:
        error = rejection_of("F,T,begin: T,end: T", "F,from $begin to $ende")
        assert "templates.csv:1:18: `$ende` is not an argument of `F`" in error.message
        assert error.hint == "It may use $begin, $end."

    def test_the_hint_for_a_getter_has_the_name_of_its_type(self) -> None:
        error = rejection_of("E.start,T,obj: E\n#E,E", "E.start,start of $obj")
        assert "`$obj` is not an argument of `E.start`" in error.message
        assert error.hint == "It may use $E."

    def test_a_getter_must_name_its_object(self) -> None:
        assert (
            "no template of `E.start` has exactly $E"
            in rejection_of("E.start,T,obj: E\n#E,E", "E.start,begin").message
        )

    def test_the_words_of_a_type_with_fields_have_no_placeholder(self) -> None:
        error = rejection_of("Setter:S.f,S,S: S,f: T\n#T,T", "S,with $f")
        assert "templates.csv:1:8: `$f` is not an argument of `S`" in error.message
        assert "plain text" in str(error.hint)

    def test_templates_need_a_name_and_one_row_for_each(self) -> None:
        assert "templates.csv:1:1: these templates have no name" in rejection_of("F,T", ",text").message
        error = rejection_of("F,T", "F,a\nG,b\nF,c")
        assert "templates.csv:3:1: `F` has two rows of templates" in error.message
        assert "line 1" in str(error.hint)

    @pytest.mark.parametrize(
        ("table", "problem"),
        [
            ('F,T\nG,"open', "2:3: this quote is never closed"),
            ('F,T\nG,"a" b', "2:6: text follows the end of a quoted cell"),
        ],
    )
    def test_wrong_quoting_is_reported_in_either_table(self, table: str, problem: str) -> None:
        assert f"types.csv:{problem}" in rejection_of(table).message
        assert f"templates.csv:{problem}" in rejection_of("F,T", table).message

    def test_a_backslash_at_the_end_of_the_templates_is_reported(self) -> None:
        assert "templates.csv:1:4: a backslash needs a character" in rejection_of("F,T", "F,a\\").message

    def test_a_long_name_is_truncated_in_the_message(self) -> None:
        assert len(rejection_of(f"F,{'é' * 1_000_000}").message) < 1_000
