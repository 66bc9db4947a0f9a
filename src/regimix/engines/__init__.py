"""Where the rows live: the few reductions over rows that solvers may ask for."""
