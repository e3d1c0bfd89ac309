"""Published models under the common protocol, one file each; a file here is a model that `candor` knows.

Written anew from papers and public code, with what we changed and why in the docstring of each. Files whose names begin
with an underscore are no models but parts of some.
"""
