"""Pacing of a budget over time: a forecast, a price that follows it, and simulated streams of customers."""
