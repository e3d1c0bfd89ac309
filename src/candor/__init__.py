"""Forecast a network of sensors, and see why."""

__version__ = "0.1.0"
