"""From a stranger's files to a panel: `panels.py` is the way in, the other files are its steps."""
