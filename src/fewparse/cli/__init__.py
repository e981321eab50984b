"""The command `fewparse`: one module per group of commands."""
