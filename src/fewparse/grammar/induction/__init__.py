"""Grammar induction: a plain `Grammar` from example programs (S-expressions), generalised by a merge level.

induce       `induce` and `coverage`: collect the functions and slots of the examples and generalise by merge level
rule_writer  write functions, slots and their fillers as grammar rules with readable names
sexpr        read and write S-expressions; split a form into function and arguments
"""
