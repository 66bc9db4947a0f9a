"""Benchmarks of regimix against what a user would pick instead."""
