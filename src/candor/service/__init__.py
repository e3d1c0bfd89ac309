"""Forecasts over HTTP: `candor serve RUN`, one process with a JSON API for programs and a page for people.

`server` assembles the application and starts the process, `routes` hold the addresses, `answers` the content of their
responses, and `schemas` the shapes of both. Every served run is a model under a name (`models`). Readings of a request
are laid on the model's time grid (`readings`, `record`, `store`), and the request waits for a batch that it shares with
others (`batching`). `middleware` and `auth` protect the service.
"""
