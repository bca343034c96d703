"""Curves + costs + budget → plan.

`allocate` gives every customer one level so that the sum of responses is as large as the budget allows; `frontier` does
it for every budget at once. Both walk the same path: each customer's curve is replaced by its upper hull (`hull`), the
hull's steps of all customers are ordered by what they bring per unit of cost (`path`), and the budget is spent from the
best step down. The step at which it runs out is the price. `expected_costs` says what a level is expected to cost a
customer, whichever way it is paid.
"""

from largesse.allocate.costs import expected_costs as expected_costs
from largesse.allocate.path import Path as Path
from largesse.allocate.path import steps as steps
from largesse.allocate.plan import allocate as allocate
from largesse.allocate.plan import at_price as at_price
from largesse.allocate.plan import frontier as frontier
