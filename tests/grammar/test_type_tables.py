import re
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewparse.errors import GrammarError
from fewparse.grammar.readers.csv_table import Table
from fewparse.grammar.readers.type_tables import Induced, induce_from_tables
from support.data import SMCALFLOW

RELEASED = SMCALFLOW / "released-grammar"
released = pytest.mark.skipif(not RELEASED.is_dir(), reason="the released tables are not at hand")
EMPTY = "empty -> #e , #e"


def induce(types: str, templates: str | None = None) -> Induced:
    return induce_from_tables([("types.csv", types)], None if templates is None else ("templates.csv", templates))


def rules(types: str, templates: str | None = None) -> list[str]:
    first, *rest = induce(types, templates).rules
    assert first == EMPTY
    return rest


def refused(types: str, templates: str | None = None) -> GrammarError:
    with pytest.raises(GrammarError) as caught:
        induce(types, templates)
    return caught.value


def read_released() -> Induced:
    types = [(name, (RELEASED / name).read_text()) for name in ("types.csv", "specialTypes.csv")]
    return induce_from_tables(types, ("templates.csv", (RELEASED / "templates.csv").read_text()))


class TestReleasedTables:
    @released
    def test_give_892_rules_with_the_rule_of_empty(self) -> None:
        induced = read_released()
        assert len(induced.rules) == len(set(induced.rules)) == 892
        assert induced.rules[0] == EMPTY

    @released
    def test_have_57_rules_of_functions_without_templates(self) -> None:
        induced = read_released()
        assert len(induced.untemplated) == sum(' -> "(call ' in rule for rule in induced.rules) == 57

    @released
    def test_lose_one_function_and_the_fields_of_types_that_nothing_produces(self) -> None:
        induced = read_released()
        assert induced.pruned_functions == ("AttendeeListHasRecipientWithType",)
        assert induced.pruned_getters == ()
        assert set(induced.pruned_fields) == {
            "Constraint[Event].reminder",
            "Constraint[Event].sensitivity",
            "Constraint[Email].importance",
        }

    @released
    def test_leave_eight_lambdas_and_the_literals_to_be_written_by_hand(self) -> None:
        induced = read_released()
        defined = {rule.split(" -> ")[0] for rule in induced.rules}
        outside_quotes = re.sub(r'"(?:\\.|[^"\\])*"', " ", "\n".join(induced.rules))
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
        induced = induce("plus,Number,x: Number,y: Number")
        assert induced.rules[1:] == (
            'number -> "(call plus" " with " "x set to " number " and " "y set to " number ")" empty , '
            '" (plus" number number ")" empty',
        )
        assert induced.untemplated == ("plus",)

    def test_without_a_template_and_without_arguments_are_called_by_name_alone(self) -> None:
        assert rules("Now,Time") == ['time -> "(call Now" ")" empty , " (Now" ")" empty']

    def test_whose_templates_are_all_empty_have_none(self) -> None:
        assert induce("Now,Time", "Now,,,").untemplated == ("Now",)

    def test_take_the_first_template_with_just_their_arguments(self) -> None:
        types = "Say,Text\nSay,Text,a: Text\nSay,Text,a: Text,b: Text"
        templates = "Say,$a,only $a,$b and $a,,nothing,,"
        assert [rule.split(" , ")[0] for rule in rules(types, templates)] == [
            "text -> #e empty",
            "text -> text empty",
            'text -> text " and " text empty',
        ]

    def test_may_have_templates_for_overloads_that_do_not_exist(self) -> None:
        assert rules("Now,Time", "Now,$zone now,now") == ['time -> "now" empty , " (Now" ")" empty']

    def test_say_an_argument_as_often_as_the_template_does(self) -> None:
        assert rules("F,T,a: T", "F,$a or $a")[0].startswith('t -> t " or " t empty ,')

    @pytest.mark.parametrize("name", ["Constraint.apply", "Lambda.construct", "Thing.known?", "List.Nil"])
    def test_may_have_a_dot_in_some_names(self, name: str) -> None:
        assert rules(f"{name},T", f"{name},said") == [f't -> "said" empty , " ({name}" ")" empty']

    def test_keep_what_needs_escaping_in_their_terminals(self) -> None:
        assert rules("F,T", r"F,\"a\" \\ é") == [r't -> "\"a\" \\ é" empty , " (F" ")" empty']


class TestPlaceholders:
    def test_end_at_a_blank_or_a_colon(self) -> None:
        types = "At,Time,hours: Number,minutes: Number\n#Number,Number"
        said = rules(types, "At,$hours:$minutes pm ")[0].split(" , ")[0]
        assert said == 'time -> number ":" number " pm " empty'

    def test_do_not_end_at_other_signs(self) -> None:
        assert "`$a,b` is no argument" in refused("F,T,a: T", r"F,$a\,b x").message


class TestGetters:
    def test_are_called_with_a_colon(self) -> None:
        types = "Event.start,DateTime,obj: Event\n#Event,Event"
        said = ' , " (:start" event ")" empty'
        assert rules(types) == ['datetime -> "start of " event empty' + said]
        assert rules(types, "Event.start,start time of $Event,ignored $x") == [
            'datetime -> "start time of " event empty' + said
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

    def test_follow_the_words_of_their_type_after_a_blank(self) -> None:
        assert rules(self.TYPES, "C[E],event,called $name,$name $day") == [
            f'c_e_ -> "event" {self.REST} empty , " (C[E]" {self.REST} ")" empty',
            f"{self.REST} -> #e , #e",
            f'{self.REST} -> " " "called " text {self.REST} empty , " :name" text {self.REST} empty',
            f'{self.REST} -> " with day set to " text {self.REST} empty , " :day" text {self.REST} empty',
        ]

    def test_of_a_type_with_an_empty_template_follow_at_once(self) -> None:
        assert rules(self.TYPES, "C[E],,called $name,$day") == [
            f'c_e_ -> {self.REST} empty , " (C[E]" {self.REST} ")" empty',
            f"{self.REST} -> #e , #e",
            f'{self.REST} -> "called " text {self.REST} empty , " :name" text {self.REST} empty',
            f'{self.REST} -> text {self.REST} empty , " :day" text {self.REST} empty',
        ]

    @pytest.mark.parametrize("templates", [None, "Other,x", "C[E],,"])
    def test_of_a_type_without_templates_are_said_by_name(self, templates: str | None) -> None:
        first, _, name, _ = rules(self.TYPES, templates)
        assert first == f'c_e_ -> {self.REST} empty , " (C[E]" {self.REST} ")" empty'
        assert (
            name == f'{self.REST} -> " with name set to " text {self.REST} empty , " :name" text {self.REST} empty'
        )


class TestDeclarations:
    def test_make_no_rule_and_let_their_type_be_used(self) -> None:
        induced = induce("#Number,Number\ntemperature,Lambda[Table_Number]\nF,T,n: Number,l: Lambda[Table_Number]")
        assert len(induced.rules) == 2
        assert induced.pruned_types == ()

    def test_of_lambdas_are_no_functions_but_their_constructor_is(self) -> None:
        assert len(rules("f,Lambda[A],x: Nowhere\nLambda.construct,Lambda[A]")) == 1


class TestPruning:
    def test_goes_on_until_everything_left_can_be_built(self) -> None:
        induced = induce("C,T3,a: T2\nB,T2,a: T1\nA,T1,a: T0\nT3.x,T4,o: T3\nSetter:S.f,S,S: S,f: T4\nKept,T5")
        assert induced.pruned_functions == ("C", "B", "A")
        assert induced.pruned_getters == ("T3.x",)
        assert induced.pruned_fields == ("S.f",)
        assert induced.pruned_types == ("T0", "T1", "T2", "T3", "T4")

    def test_keeps_a_type_while_one_producer_is_left(self) -> None:
        induced = induce("A,T,a: Nothing\nB,T\nC,U,t: T")
        assert induced.pruned_functions == ("A",)
        assert [rule.split(" -> ")[0] for rule in induced.rules] == ["empty", "t", "u"]

    def test_keeps_a_type_that_has_lost_all_its_fields(self) -> None:
        types = "Setter:S.f,S,S: S,f: Nothing\nSetter:S.g,S,S: S,g: Thing\n#Thing,Thing\nF,T,s: S"
        induced = induce(types, "S,an s,with $f,and $g")
        assert induced.pruned_fields == ("S.f",)
        assert [rule.split(" -> ")[0] for rule in induced.rules] == ["empty", "s", "s_s_args", "s_s_args", "t"]

    def test_asks_for_no_template_of_what_it_drops(self) -> None:
        assert rules("F,T,a: Nothing", "F,no placeholder") == []


class TestReading:
    def test_joins_several_tables_in_their_order(self) -> None:
        joined = induce_from_tables([("a.csv", "B,T"), ("b.csv", "A,T,u: U\nC,U")], None)
        assert joined == induce("B,T\nA,T,u: U\nC,U")

    def test_ignores_blank_rows_empty_cells_at_the_end_and_blanks_around_types(self) -> None:
        assert induce("\ufeff\n F , T , a:T ,, \r\n,,\n\n") == induce("F,T,a: T")

    def test_understands_quoted_cells_of_a_type_table(self) -> None:
        assert rules('"say ""hi""",T') == [r't -> "(call say \"hi\"" ")" empty , " (say \"hi\"" ")" empty']

    def test_takes_a_backslash_in_a_type_table_as_it_is(self) -> None:
        assert r'" (a\\b"' in rules(r"a\b,T")[0]

    def test_keeps_blanks_and_escaped_commas_of_templates(self) -> None:
        assert rules("F,T,a: T", r"F,Yes\, $a \\ ,")[0].startswith(r't -> "Yes, " t " \\ " empty')

    @given(st.lists(st.lists(st.text(st.characters(codec="utf-8")), min_size=1), max_size=4))
    def test_gives_back_any_cells_that_were_quoted(self, cells: list[list[str]]) -> None:
        written = [[*row, "end"] for row in cells]
        escaped = "\n".join(
            ",".join(f'"{cell.replace(chr(92), chr(92) * 2).replace(chr(34), chr(34) * 2)}"' for cell in row)
            for row in written
        )
        read = Table("t.csv", escaped, templates=True).rows()
        assert [[cell.text for cell in row] for row in read] == written

    @given(st.text(st.sampled_from('a,"\\\n\r$ :.[]#')), st.text(st.sampled_from('FT,"\\\n$ a')))
    def test_ends_in_rules_or_in_a_grammar_error(self, types: str, templates: str) -> None:
        with suppress(GrammarError):
            assert induce(f"F,T,a: T\n{types}", templates).rules

    def test_of_large_tables_keeps_every_row_and_long_cells(self) -> None:
        long = "x" * 1_000_000
        types = "".join(f"F{i},T{i},a: T{i - 1}\n" for i in range(20_000, 0, -1)) + "F0,T0,a: T0\n"
        assert len(rules(types, f"F0,{long} $a")) == 20_001
        assert len(induce(types.replace("F0,T0,a: T0\n", "")).pruned_functions) == 20_000


class TestMistakes:
    @pytest.mark.parametrize("types", ["F,T\nG", "F,T\nG,,a: T", "F,T\n,T"])
    def test_a_row_with_too_few_cells_is_shown(self, types: str) -> None:
        error = refused(types)
        assert "types.csv:2:1: a row needs a name and a return type" in error.message
        assert "name,returnType" in str(error.hint)

    @pytest.mark.parametrize("cell", ["T", "a:", ": T", "a b: T", "", '" "'])
    def test_a_cell_that_is_no_argument_is_shown(self, cell: str) -> None:
        assert "types.csv:2:5: expected `arg: Type`" in refused(f"F,T\nF,T,{cell},b: T").message

    def test_two_arguments_of_one_name_are_refused(self) -> None:
        assert "two arguments called `a`" in refused("F,T,a: T,a: T").message

    @pytest.mark.parametrize("types", ["F,4T", "F,T,a: T-U", "F,Été", "A.B.c,T", "F,_T", ".x,T"])
    def test_a_type_that_gives_no_legal_name_is_refused(self, types: str) -> None:
        error = refused(types)
        assert "cannot be the name of a type" in error.message
        assert "letters" in str(error.hint)

    @pytest.mark.parametrize("types", ["Setter:S.f,S,f: T", "Setter:S.f,S", "Setter:S.f,S,S: S,f: T,g: T"])
    def test_a_setter_needs_its_type_and_its_field(self, types: str) -> None:
        assert "types.csv:1:1: a setter has two arguments" in refused(types).message

    def test_item_needs_an_object(self) -> None:
        assert "`item` needs an argument" in refused("item,T").message

    def test_an_overload_that_no_template_fits_says_what_is_wanted_and_found(self) -> None:
        error = refused("F,T,a: T\nF,T,a: T,b: T", "\nF,one $a,nothing")
        assert "templates.csv:2:1: no template of `F` has just $a, $b" in error.message
        assert "types.csv:2" in str(error.hint)
        assert "Found: $a; no placeholder." in str(error.hint)

    def test_an_overload_without_arguments_wants_no_placeholder(self) -> None:
        assert "has just no placeholder" in refused("F,T,a: T\nF,T", "F,one $a").message

    def test_a_misspelt_placeholder_is_shown(self) -> None:
        error = refused("F,T,begin: T,end: T", "F,from $begin to $ende")
        assert "templates.csv:1:18: `$ende` is no argument of `F`" in error.message
        assert error.hint == "It may use $begin, $end."

    def test_a_getter_is_told_the_name_of_its_type(self) -> None:
        error = refused("E.start,T,obj: E\n#E,E", "E.start,start of $obj")
        assert "`$obj` is no argument of `E.start`" in error.message
        assert error.hint == "It may use $E."

    def test_a_getter_must_name_its_object(self) -> None:
        assert "no template of `E.start` has just $E" in refused("E.start,T,obj: E\n#E,E", "E.start,begin").message

    def test_the_words_of_a_type_with_fields_have_no_placeholder(self) -> None:
        error = refused("Setter:S.f,S,S: S,f: T\n#T,T", "S,with $f")
        assert "templates.csv:1:8: `$f` is no argument of `S`" in error.message
        assert "plain text" in str(error.hint)

    def test_templates_need_a_name_and_one_row_for_each(self) -> None:
        assert "templates.csv:1:1: these templates belong to no name" in refused("F,T", ",text").message
        error = refused("F,T", "F,a\nG,b\nF,c")
        assert "templates.csv:3:1: `F` has two rows of templates" in error.message
        assert "line 1" in str(error.hint)

    @pytest.mark.parametrize(
        ("table", "problem"),
        [
            ('F,T\nG,"open', "2:3: this quote is never closed"),
            ('F,T\nG,"a" b', "2:6: text follows the end of a quoted cell"),
        ],
    )
    def test_wrong_quoting_is_shown_in_either_table(self, table: str, problem: str) -> None:
        assert f"types.csv:{problem}" in refused(table).message
        assert f"templates.csv:{problem}" in refused("F,T", table).message

    def test_a_backslash_at_the_end_of_the_templates_is_shown(self) -> None:
        assert "templates.csv:1:4: a backslash needs a character" in refused("F,T", "F,a\\").message

    def test_a_long_name_is_cut_in_the_message(self) -> None:
        assert len(refused(f"F,{'é' * 1_000_000}").message) < 1_000
