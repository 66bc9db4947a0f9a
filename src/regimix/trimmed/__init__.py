"""One component: trimmed least squares from a given start."""
