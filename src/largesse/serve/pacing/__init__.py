"""Pacing of a budget over time: a forecast, a price that follows it, and a rehearsal on simulated streams."""
