"""Makers, fixtures and helpers that tests share."""
