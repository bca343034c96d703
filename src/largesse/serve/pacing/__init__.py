"""Budget pacing over time: price forecast, feedback control of the price, and simulated customer streams."""
