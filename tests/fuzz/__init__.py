"""Random tables for every estimator and function: ``make fuzz TABLES=200``."""
