"""Parsing of texts with a Grammar: charts, parse forests, parse failures and completions.

automaton        dotted rules grouped into LR(0) states, built lazily and cached across texts
chart            Earley parser over these states: Chart or ParseFailure
forest           shared packed parse forest (SPPF) of a chart: all derivations, counted or enumerated
shortest_suffix  the shortest string that completes a prefix to a sentence
"""
