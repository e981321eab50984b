"""Context-free and synchronous grammars over characters, without any dependency on language models.

rules        Grammar: the rules of a context-free grammar; trimming of useless rules.
synchronous  SynchronousGrammar: rules that derive an utterance and a program together.
readers      grammar files in; Grammar or SynchronousGrammar out.
parsing      Grammar and text in; chart, packed parse forest, parse failure or shortest completion out.
translation  SynchronousGrammar and a text of one side in; the best texts of the other side out.
induction    example programs in; a Grammar that derives them out.
analysis     grammars and derivations in; samples, statistics, lint findings and tree drawings out.
export       Grammar in; the notations of Lark and llama.cpp (GBNF) out.
"""
