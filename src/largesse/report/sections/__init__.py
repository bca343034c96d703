"""Sections of the report, each with a template of the same name."""
