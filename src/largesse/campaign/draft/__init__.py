"""The first draft of a campaign file: profile a table, guess roles and levels, write the text."""
