"""One HTML file about a run, for people: what it learned from, how good it is, what it forecasts and why.

It needs nothing beside itself: no network, no other file, no program but a browser.
"""
