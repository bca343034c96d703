"""A first campaign file for a table."""
