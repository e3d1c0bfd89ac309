"""Checks of a panel before it is used.

report = check_panel(panel)
report.findings        # errors, warnings and notes, each with where, how often and what to do
report.sensors         # a line about every sensor

Thresholds stand as named constants at the top of the file that uses them. They were settled by hand on real records of
months and years (highway speeds, river levels, oxygen, conductivity, temperature, rain), so that those raise no false
alarm; short records of coarse or strongly seasonal sensors still raise one now and then.
"""

from candor.data.checks.check import CheckReport, SensorSummary, check_panel

__all__ = ["CheckReport", "SensorSummary", "check_panel"]
