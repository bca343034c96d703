"""Probabilities of levels that make the next log's estimates as precise as a cost allows: cost-aware Neyman allocation."""
