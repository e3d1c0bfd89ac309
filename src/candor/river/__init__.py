"""The basin builder: from the public services of the USGS and NASA to a panel of hourly readings on a directed river.

settings        what is to be built
presets         the paper's three basins and what its table says of them
cache           answers of services on disk, kept by question
asking          how services are asked: each question once, politely, and what is said when they do not answer
pages           the pages that an answer came on, each looked at before it counts
sites           which sites of a basin measure a quantity
readings        what they measured, and which readings count
hours           readings on an hourly grid
stations        the sensor of each site, and which sites are complete enough
flowlines       rivers as lines: lengths, and where a site lies on them
lengths         how long NHDPlus says they are
network         which site lies downstream of which, and how far along the river
imerg           which cell of IMERG's grid a place lies in, and what a file says of it
imerg_ranges    reading parts of large files over HTTP, with patience
imerg_archive   NASA's archive: logging in, finding files, reading cells out of them
rain            hourly rain at the stations, from half hours
rain_store      half hours that were read already
quality         what was found and decided, for people and for programs
build           all of it, in order
card            the dataset card
folder          a basin on disk
archive         a basin as one file that can be passed on
toolbox         what the network of a panel says about its river
follow          what is new in a basin that was built, for a model that is at work

Everything that talks to a service needs the extra `river` and is imported when it is used.
"""
