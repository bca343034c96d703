"""Slow plain computations that fast code is compared with. Nothing here uses the code under test."""
