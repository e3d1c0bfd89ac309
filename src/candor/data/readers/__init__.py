"""From files to a panel: `panels.read_panel` is the entry, the other modules are its steps."""
