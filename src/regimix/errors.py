"""Every error and warning of regimix, as one small tree.

::

    RegimixError
    ├── CheckpointError      a checkpoint cannot be used or written   (also a ValueError)
    ├── ClusterError         a cluster does not do its work           (also a RuntimeError)
    ├── DataError            the table cannot be used as it is        (also a ValueError)
    │   └── DataKindError    a cell or column is not a number         (also a TypeError)
    ├── ModelFileError       a model file cannot be read or written   (also a ValueError)
    ├── OutOfTimeError       a time limit came before an answer       (also a TimeoutError)
    ├── ParameterError       a setting is outside what is allowed     (also a ValueError)
    ├── StoppedError         a callback came before an answer         (also a RuntimeError)
    └── MissingExtraError    an optional dependency is not installed  (also an ImportError)

    RegimixWarning           the answer is the best there is, but read this
    ├── ConvergenceWarning   a limit ended the work before it settled
    ├── RankWarning          the kept rows do not determine every coefficient
    ├── EvidenceWarning      the data do not support what was asked for
    └── UnrepeatedWarning    no second search came to the same answer

A message says what is wrong, what was received, what is allowed and what to do.
"""

__all__ = [
    "CheckpointError",
    "ClusterError",
    "ConvergenceWarning",
    "DataError",
    "DataKindError",
    "EvidenceWarning",
    "MissingExtraError",
    "ModelFileError",
    "OutOfTimeError",
    "ParameterError",
    "RankWarning",
    "RegimixError",
    "RegimixWarning",
    "StoppedError",
    "UnrepeatedWarning",
]


class RegimixError(Exception):
    """Base of every error that regimix raises on purpose."""


class CheckpointError(RegimixError, ValueError):
    """A checkpoint cannot be read or written, or belongs to another fit."""


class ClusterError(RegimixError, RuntimeError):
    """A cluster did not do what was asked of it."""


class DataError(RegimixError, ValueError):
    """The table cannot be used as it is."""


class DataKindError(DataError, TypeError):
    """A cell or a column is not a number."""


class ModelFileError(RegimixError, ValueError):
    """A model file cannot be read, or a model cannot be written to one."""


class ParameterError(RegimixError, ValueError):
    """A setting is outside what is allowed."""


class OutOfTimeError(RegimixError, TimeoutError):
    """A time limit was reached before there was an answer."""


class StoppedError(RegimixError, RuntimeError):
    """A callback asked for the end before there was an answer."""


class MissingExtraError(RegimixError, ImportError):
    """An optional dependency is not installed."""


class RegimixWarning(UserWarning):
    """Base of every warning that regimix gives."""


class ConvergenceWarning(RegimixWarning):
    """A limit ended the work before it settled; the best so far is returned."""


class RankWarning(RegimixWarning):
    """The kept rows do not determine every coefficient; the smallest solution is returned."""


class EvidenceWarning(RegimixWarning):
    """The data do not support what was asked for; the nearest supported answer is returned."""


class UnrepeatedWarning(RegimixWarning):
    """Independent searches ended with different answers; the best of them is returned."""
