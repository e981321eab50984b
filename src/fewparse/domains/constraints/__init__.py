"""The kinds of `[constraint]` in domain.toml: a domain in; a constraint for each parse out."""
