"""Where starts come from, and how the best is found."""
