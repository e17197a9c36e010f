"""Whole statements and empty blocks as an editor gets them: how much of the text is offered, and how much is right."""
