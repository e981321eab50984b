"""Analysis of grammars: statistics, findings, random sentences and drawings of derivations.

statistics  size, recursion, cycles and useless names of a grammar; number of derivations of texts
lint        the statistics that are probably mistakes, as `Finding`s
sampling    random sentences of a grammar, random pairs of a synchronous grammar
derivation  a derivation as a `DerivationTree` of labelled nodes and text
tree_svg    a `DerivationTree` as text for the terminal, or as SVG
"""
