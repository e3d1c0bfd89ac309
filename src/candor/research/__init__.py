"""A grid of dataset x horizon x model x seed under one protocol: every cell a run directory, every number traceable.

| file | what it does |
|---|---|
| suites.py | which tasks, models, seeds and budgets a suite has |
| cells.py, running.py | one cell and its state; train it or go on, judge it, or say why not |
| local.py, cluster.py | cells in processes of this machine, or on a Ray cluster |
| results.py | the scores of all cells as one tidy table |
| tables.py, joint.py, rain.py | tables shaped like the paper's: by step, by horizon, without and with rain |
| notes.py, writing.py | what is said below them; tables as Markdown, LaTeX and HTML |
| variants.py, pairing.py | the paper's ablations and sweeps, and changes paired by seed |
| measuring.py, profiling.py | parameters, operations, times and memory of every network |
| drawing.py | the figures of ablations, sweeps and costs |
"""
