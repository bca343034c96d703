"""The price of a budget: hulls of curves, the search for the price, and whole levels at it."""
