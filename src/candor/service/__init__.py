"""Forecasts over HTTP: `candor serve RUN`, one process with a JSON API for programs and a page for people.

`server` starts the process, `app` assembles the application, `routes` hold the addresses and `schemas` what they take
and return. Every served run is a model under a name (`models`). Readings of a request are laid on the model's time grid
(`readings`, `record`, `store`), and the request waits for a batch that it shares with others (`batching`). `limits` and
`auth` protect the service.
"""
