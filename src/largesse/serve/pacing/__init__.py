"""Keep to a budget while customers come one by one: a forecast, a price that follows it, and a rehearsal on streams."""
