"""Export of grammars to the notations of other tools.

notations       the EBNF of Lark and the GBNF of llama.cpp
left_recursion  left-recursive cycles of a grammar, and their removal, which GBNF requires
"""
