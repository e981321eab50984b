"""The calendar domain: questions and commands about meetings, people and rooms."""
