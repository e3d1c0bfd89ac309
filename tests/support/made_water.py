"""Small water networks, written as EPANET input files."""

from pathlib import Path

LINE = """[JUNCTIONS]
A 0 0
B 0 5
C 0 20
[RESERVOIRS]
Spring 80
[PIPES]
p1 Spring A 500 300 100 0 Open
p2 A B 1500 300 100 0 Open
p3 B C 2000 300 100 0 Open
[OPTIONS]
Units LPS
Headloss H-W
[COORDINATES]
Spring 0 0
A 5 0
B 20 0
C 20 20
[END]
"""
"""A spring, and three junctions in a row; at B a fifth of the water leaves, at C the rest."""

TANK = LINE.replace(
    "[PIPES]",
    """[TANKS]
Tower 75 2 0 4 15 0
[PATTERNS]
1 1.6 0.4
[TIMES]
Pattern Timestep 12:00
[PIPES]
p4 C Tower 200 300 100 0 Open""",
)
"""The same with a water tower beyond C, which fills while little is taken and empties while much is."""


def write_network(folder: Path, text: str = LINE, name: str = "town.inp") -> str:
    """Returns the path of an input file with this text."""
    path = folder / name
    path.write_text(text)
    return str(path)
