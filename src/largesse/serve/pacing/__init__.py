"""Budget pacing over time: forecast and feedback control of the shadow price, and simulated customer streams."""
