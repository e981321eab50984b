"""SMCalFlow: programs of dialogues with a calendar, and how they are compared."""
