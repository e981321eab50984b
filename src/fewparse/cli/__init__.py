"""The command `fewparse`: one small module a group of commands."""
