"""Sections of the report: one module with its view and one template of the same name for each."""
