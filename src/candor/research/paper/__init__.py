"""What `candor paper` shows, as plain data: results found in folders, their tables and origins, and what is missing.

| file | what it does |
|---|---|
| found.py | finds what other commands left behind; a grid with its results |
| tables.py | tables beside those of `candor.research.tables`: costs, truth, settings, ablations of all tasks |
| shock_rain.py | tables, findings and origin of what `candor shock-rain` kept |
| origins.py | data, protocol, command, dates and versions in words |
| missing.py | what the paper has and the results that were found have not |
"""
