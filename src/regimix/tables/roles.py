"""Which column is what: the roles that users give, and names that are not there."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from regimix.errors import DataError, Message, Setting, UnknownColumnError

__all__ = ["Roles", "locate"]


@dataclass(frozen=True)
class Roles:
    """Which columns a user wants for what; None: whatever is left and can be used."""

    target: str
    features: tuple[str, ...] | None = None
    drop: tuple[str, ...] = ()
    weights: str | None = None
    key: str | None = None

    def check(self, names: Collection[str], source: str) -> None:
        """Refuse names that are not there, and columns with two roles."""
        for name, role in self._named():
            locate(names, name, source, role)
        others = [name for name in (self.target, self.weights) if name is not None]
        for name in self.features or ():
            if name in others:
                raise DataError(
                    Message(
                        f"column {name!r} cannot be a feature: it is the target or the weights. "
                        "Leave it out of ",
                        Setting("features"),
                        ".",
                    )
                )
            if name in self.drop:
                raise DataError(
                    Message(
                        f"column {name!r} is in ",
                        Setting("features"),
                        " and in ",
                        Setting("drop"),
                        "; leave it in one.",
                    )
                )
        if self.target in (self.weights, self.key, *self.drop):
            raise DataError(
                f"column {self.target!r} is the target; it cannot be the weights, the key or "
                "dropped."
            )

    def candidates(self, names: Sequence[str]) -> list[str]:
        """Return the columns that may become features, in order."""
        if self.features is not None:
            return list(dict.fromkeys(self.features))
        taken = {self.target, self.weights, self.key, *self.drop}
        return [name for name in names if name not in taken]

    def role(self, name: str) -> str:
        """Say what a column is for."""
        return next((role for known, role in self._named() if known == name), "a feature")

    def _named(self) -> list[tuple[str, str]]:
        pairs = [(self.target, "the target")]
        pairs += [(name, "a feature") for name in self.features or ()]
        pairs += [(name, "to drop") for name in self.drop]
        pairs += [(name, "the weights") for name in (self.weights,) if name is not None]
        return pairs + [(name, "the key") for name in (self.key,) if name is not None]


def locate(names: Collection[str], wanted: str, source: str, role: str) -> None:
    """Refuse the name of a column that is not there; say which ones are close."""
    if wanted in names:
        return
    lower = {name.lower(): name for name in names}
    found = difflib.get_close_matches(wanted.lower(), lower, n=3, cutoff=0.5)
    close = [lower[name] for name in found]
    if close:
        advice = f"Did you mean {' or '.join(map(repr, close))}?"
    else:
        shown = ", ".join(map(repr, list(names)[:8])) + (", ..." if len(names) > 8 else "")
        advice = f"Its columns are {shown}."
    message = f"{source} has no column {wanted!r} ({role}). {advice}"
    raise UnknownColumnError(message, role, close)
