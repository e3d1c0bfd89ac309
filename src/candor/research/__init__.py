"""Studies of models and data, as plain data that `candor.render` draws.

| file | what it does |
|---|---|
| engine.py | cells of work, each done once, in processes of this machine or on a Ray cluster |
| suites.py, grid.py | dataset x horizon x model x seed under one protocol; the scores of all cells as one table |
| ablations.py | the paper's ablations and sweeps, and changes paired by seed |
| tables.py, table_notes.py | tables shaped like the paper's, and what is said below them |
| measuring.py, profiling.py | parameters, operations, times and memory of every model |
| explore.py, patterns.py | what is in data before any model |
| shock_rain.py, shock_rain_runs.py | learned shocks against rain |
| truth/ | whether explanations are true, on networks whose truth is known |
| paper/ | results found in folders, and what is said of them |
"""
