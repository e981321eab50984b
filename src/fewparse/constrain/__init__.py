"""nextTokens: which tokens keep an output well-formed."""
