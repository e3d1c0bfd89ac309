"""Figures of a run, each as PNG and SVG with its numbers as CSV beside it; needs no display."""
