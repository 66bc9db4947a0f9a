"""One module for each claim, or for a few that share their measurement."""
