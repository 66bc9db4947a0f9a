"""MLR-C data (mixed linear regression with corruptions) and the whole truth about them.

``truth`` says what is known about a data set, ``components`` places the linear models,
``features`` draws the rows of X, ``corruption`` spoils responses, ``make`` puts them together and
``checks`` is the door for parameters.
"""

from regimix.synth.make import make_mlrc
from regimix.synth.truth import MLRCData, Truth

__all__ = ["MLRCData", "Truth", "make_mlrc"]
