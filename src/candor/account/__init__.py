"""The account of a network: usual + own + arrivals + rest, found in closed form in seconds, each with a unit.

| file | what it holds |
|---|---|
| usual.py | what is usual for a sensor at a time of the week and of the year |
| deviations.py | readings minus what is usual, in the sensor's own robust spread |
| lagged.py | products of series with others so many steps earlier, by FFT or in blocks |
| delays.py | how long deviations travel along each edge, with an interval |
| regression.py | what own and neighbours' deviations say about the next steps, by ridge regression |
| neighbours.py | which sensors are read for which, along edges and against them |
| likeness.py | which sensors behave alike, map or no map |
| storage.py | a sensor's own deviation, split into slow storage and sudden shocks by a Kalman filter |
| flow.py | deviations as what arrives along edges, storage, shock and rest |
| settings.py, fitting.py | what is left open and how it is chosen; from readings to an account |
| account.py | the fitted account, and its parts that sum to the forecast |
"""
