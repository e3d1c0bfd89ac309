"""Are CANDOR's explanations true? They are scored on synthetic networks, whose truth the generator knows.

| question | file |
|---|---|
| are shock gates open where a shock was injected? | shocks.py |
| does the model know the delay and the attenuation of edges? | edges.py, pulses.py |
| do functional relations find planted twins? | twins.py |
| do accumulation and release follow what is stored? | storage.py |

What the model says is collected in told.py, what simple rules say in rules.py; ranking.py scores both alike. asking.py
puts all questions to one run, cells.py trains and asks a network of one seed, workers.py several at a time, results.py
writes what came out.
"""
