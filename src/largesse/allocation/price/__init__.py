"""Solution by one price: upper hulls of curves, search for the price of a budget, and rounding to a plan."""
