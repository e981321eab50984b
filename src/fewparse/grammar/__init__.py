"""Context-free and synchronous grammars over characters, without any dependency on language models.

rules        Grammar: the rules of a context-free grammar; trimming of useless rules.
synchronous  SynchronousGrammar: rules that derive an utterance and a program together.
readers      Read grammar files of several notations as a Grammar or SynchronousGrammar.
parsing      Parse a text by a Grammar: chart, packed parse forest, parse failure, shortest completion.
translation  Translate a text of one side of a SynchronousGrammar to the best texts of the other side.
induction    Induce a Grammar from example programs.
analysis     Statistics, lint findings and random samples of a grammar; drawings of derivations.
export       Write a Grammar in the notations of Lark and llama.cpp (GBNF).
"""
