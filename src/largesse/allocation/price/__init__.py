"""Solution by one shadow price: upper hulls of curves, search for the budget's price, and rounding to a plan."""
