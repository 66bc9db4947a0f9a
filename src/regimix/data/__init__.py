"""From users' tables to numbers: checks and conversion, weights, units and their inverse.

``validation`` reads arrays, data frames and lists into NumPy arrays of real numbers, or says what
is wrong with them. ``problem`` finds the units in which solvers see a table and translates
coefficients back. Where the rows live (memory, files, a cluster) is the business of ``engines``.
"""
