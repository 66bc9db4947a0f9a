"""Colours and marks of regimes and outliers, shared by every plot.

Nothing is imported here: any plotting library can use the same colours.
"""

# Okabe and Ito's colours, which colour-blind people can tell apart; the strongest contrasts first.
REGIMES = (
    "#0072B2",  # blue
    "#D55E00",  # vermilion
    "#009E73",  # green
    "#CC79A7",  # purple
    "#E69F00",  # orange
    "#56B4E9",  # sky blue
    "#F0E442",  # yellow: too pale for white paper without a dark edge
    "#000000",  # black
)
OUTLIERS = "#888888"
NEUTRAL = "#555555"  # guides and remarks
# Colours that need a dark edge to be seen on white, and the edge.
PALE = frozenset({"#F0E442"})
EDGE = "#444444"

# In the order of the report. One less than colours: a colour that comes again has another mark.
MARKERS = ("o", "s", "^", "D", "v", "P", "h")


def colour(regime: int) -> str:
    """Return the colour of a regime; -1 stands for outliers."""
    return OUTLIERS if regime < 0 else REGIMES[regime % len(REGIMES)]


def marker(regime: int) -> str:
    """Return the mark of a regime, in matplotlib's letters; -1 stands for outliers."""
    return "x" if regime < 0 else MARKERS[regime % len(MARKERS)]


def dashes(regime: int) -> str:
    """Return how the line of a regime is drawn: dashed when its colour comes again."""
    return ("-", "--", ":", "-.")[regime // len(REGIMES) % 4]
