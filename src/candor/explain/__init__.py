"""Analyses of runs and of data: numbers first, then the figures that show them."""
