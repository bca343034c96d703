"""The words of the page of results: what was run, and why numbers may differ from the paper's. No number of ours is in them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Prose:
    """The words of one section: its title, what was run, and what differs from the paper and why."""

    title: str
    run: str = ""
    differs: str = ""


OPENING = """\
# The paper's experiments, repeated

Every number on this page is read from the files in [`{folder}`]({folder}), one for each experiment, which hold the summary and
the command that made it; the page and its figures are written anew by `largesse experiment page`. Verdicts are computed from
the same files; what is said under “What differs, and why” is our reading of full runs on a GPU.
Spreads (±) are standard deviations over repeats, as in the paper; intervals are 95 % intervals of differences, paired
repeat by repeat unless marked.
"""

TABLE = """\
† without balance (κ = 0). “–”: not printed in the paper, or a method that has no such number.
"""

PROSE: dict[str, Prose] = {
    "table1": Prose(
        "Table 1: simulated logs",
        run="""\
Five ordered levels, fifty features, one response in each row. The paper's description of its simulation can be read
in several ways, so there are several. `literal` is to the letter: distances add up over fifty features, hardly any
customer is near any centre, so responses hardly differ between customers, and there is next to nothing to
personalise. `unit` draws features from the unit cube, `averaged` averages distances instead of adding them; both make
customers differ. In `instrument` the log follows features that do not drive the response, in `confounded` it follows
the response itself, and what a level adds differs between customers. RMSE is over fresh customers and all levels
against the true mean response, √PEHE that of the effect in the two-level problem, reward the true mean response of
the plan made from the curves for a budget, skill its place between the best uniform mix (0) and a plan that knows the
truth (1). Rows that need no model (level means, the best uniform mix, the truth itself) show what a number is worth.""",
        differs="""\
The paper says neither how responses are drawn around their mean, nor the size of the test set, batch, epochs,
activation or the grid of κ; responses here are yes or no, so part of every error is noise. Its rewards fit no reading
of its simulation that we found, so compare rewards with the uniform and the oracle row, not with the paper's column.
It prints no √PEHE for the monotone model, which can be fitted to two levels as well, and is. Spreads of the paper's
hundred repeats mix new worlds with new rows; paired differences do not, and are what the orderings are judged by.

CFRNet, BART and GANITE stand in another order than in the paper, which does not say how CFRNet was made for five levels.
Read as one network for each pair of the lowest level and another, each sees two fifths of the rows, and at the published
sizes that is hardly enough to do better than level means; one network with five heads (“shared”) is nearer to the
paper's number. The errors that the paper prints for BART and GANITE are above those that level means have here on
`averaged`, as if nothing were known of the customers; a BART with its usual prior, given the features and the level, does
much better than that.""",
    ),
    "table2": Prose(
        "Table 2: nested labels",
        run="""\
Ordered labels, each within the next: a broader label is right more often and costs more, the response is whether the
label given is right. A logging policy gives every row one label. Animal ⊃ invertebrate ⊃ arthropod ⊃ insect is the
order of the word net; the paper has the middle two the other way round. `images` are embedded photographs of small
size, `text` embedded glosses of a dictionary, with the same labels in the same numbers; `generated` rows stand in
where neither file is there. Repeats draw another split and another log; none of these was looked at while models were
made. Few rows have any label, so small budgets are where plans differ.""",
        differs="""\
The paper's images and embedding cannot be had as it describes them (its network has no layer of that width), and the
share of positives it states would cap the reward below what it reports. Levels of error and reward therefore cannot
be compared across the two columns; orderings can. The paper has no text. Responses are certain here, given a row: what is
unknown is only the row's own label, of which a thousand features tell much. Balance has little to give where the
log follows the same features as the labels do; and the paper's min-max head costs more than its monotonicity brings:
compare CCPOvSIRE with CCPOvIRE, and with SIRE and Stack, which never fall either.""",
    ),
    "kernels": Prose(
        "Choice of kernel",
        run="""\
The models of Table 1 with HSIC of another kernel on the representation: linear, as in the paper's main table,
Gaussian (RBF), and random features that stand for it, which the paper does not have.""",
        differs="""\
The paper's rewards with the RBF kernel lie on another level than those of its main table by many of their standard
deviations, for both models alike: another draw of the data, most likely. Here all kernels meet the same logs.""",
    ),
    "kappa": Prose(
        "How much balance: κ",
        run="""\
The same models with the strength κ of the balance penalty fixed in advance, from none to much, instead of chosen on
held-out rows. Zero stands apart on the left.""",
        differs="""\
The paper gives no values of κ, and its scale depends on that of the representation, which is normalised here: the
shapes of the curves can be compared, not the places of their lowest points.""",
    ),
    "rates": Prose(
        "Proposition 3: what monotonicity is worth as levels grow in number",
        run="""\
Proposition 3 says that least squares over curves that never fall has error σ² log(K)/(nK) where free least squares
has σ²/n, for every true curve that never falls. Both were fitted to K level means of n rows each. Errors are in units
of σ²/n, gaps between levels in units of s = σ/√n.""",
        differs="""\
The proposition counts curves on one grid that in truth is centred elsewhere for every level, and one of its entropy
bounds is conjectured. For k constant pieces the error is about σ² k log(eK/k)/(nK), which is the promise, up to k.
Where gaps are below the noise, pooling neighbours pays; where a curve rises at every level by much more than s there
is nothing to pool, and the monotone estimate is the free one. With few rows per level, which is when help is needed
most, gaps are small against s and the gain is real.""",
    ),
    "rates_n": Prose(
        "Error by rows",
        run="""\
Response models fitted to logs of growing length from the same worlds; networks are smaller than the default. The
slope is that of log RMSE over log n: −½ where all error is noise, 0 where nothing is left to learn.""",
    ),
    "simulation": Prose(
        "Models on simulated logs",
        run="""\
Any of our models and the paper's on logs of the simulations of Table 1, each fitted to the same rows. Seconds are of one
fit, or its share where several were fitted together.""",
    ),
    "coverage": Prose("Coverage of intervals"),
}


def prose(experiment: str) -> Prose:
    """Return the words of an experiment; of one that has none, its name."""
    return PROSE.get(experiment, Prose(experiment))
