"""The basin builder: from the public services of the USGS and NASA to a panel of hourly readings on a directed river.

settings        what is to be built; the paper's three basins
retries         how often and after what pauses a request is repeated
client, cache   requests to services: each once, several at a time, with responses kept on disk
stations        which sites measure a quantity, which sensor represents each, and its hourly values
readings        what the sensors measured, and which readings count
network         which station lies downstream of which, and how far along the river
imerg           NASA's half-hourly rain: the archive, its files, and the grid cell of a place
http_ranges     reading parts of large files over HTTP
rain            hourly rain at the stations
quality         what was found and decided, beside the paper's numbers
build           all of it, in order
folder          a basin on disk, its dataset card, and an archive that can be passed on
follow          what is new in a basin that was built, for a model that is at work
toolbox         what the network of a panel says about its river

Everything that talks to a service needs the extra `river` and is imported when it is used.
"""
