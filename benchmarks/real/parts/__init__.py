"""The questions, in the order in which they are asked."""

from benchmarks.real.part import Part
from benchmarks.real.parts import (
    classics,
    heldout,
    likelihood,
    null,
    planted,
    stability,
    times,
)

PARTS: dict[str, Part] = {
    "classics": classics.PART,
    "stability": stability.PART,
    "heldout": heldout.PART,
    "null": null.PART,
    "planted": planted.PART,
    "likelihood": likelihood.PART,
    "time": times.PART,
}
