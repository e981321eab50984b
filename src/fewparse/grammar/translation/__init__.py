"""Translation with a synchronous grammar, from a text of one side to the k best texts of the other side.

translator        `Translator`: both directions of a `SynchronousGrammar`, and the result, a `Translation`
transfer          each production of the source side with its target templates, computed once per grammar
scorers           the cost of a rule in its context: by length, by number of rules, or learned from programs
inside            the best value of every node of the source text's parse forest (Viterbi inside values)
kbest             the k best derivations of the forest with distinct target texts
shortest_strings  the shortest strings of a nonterminal, for target symbols without a link to the source
"""
