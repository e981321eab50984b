"""Readers of grammar files: Grammar from `.lark`, SynchronousGrammar from `.scfg` and type tables.

load           a file or folder, by its dialect (entry point)
ebnf           the EBNF of Lark (`.lark`) -> Grammar
expressions    right-hand sides with groups and repetition -> plain rules
regex          regular expressions -> expressions or character classes
scfg           `.scfg` rules and macros -> SynchronousGrammar
scfg_lines     one line of an `.scfg` file -> a rule or a macro
type_tables    CSV tables of functions and templates -> lines of an `.scfg` file
csv_table      CSV text -> cells with their positions
leading_space  SynchronousGrammar -> the same without the space with which all its texts start
"""
