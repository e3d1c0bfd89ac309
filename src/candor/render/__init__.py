"""Plain data as pictures and pages; nothing here runs a network."""
