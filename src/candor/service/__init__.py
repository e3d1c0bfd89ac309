"""Forecasts over HTTP: `candor serve RUN`, one process with an interface for programs and a page for people.

Every served run is a model under a name. A request finds its model (`served`), has its readings laid on the model's
grid (`record`), and waits for a batch it shares with other clients (`batching`); what it may ask and what it is told
stand in `messages`. What protects the service stands around all of that: `limits`, `security` and `connection`.
"""
