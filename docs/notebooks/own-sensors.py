# %% [markdown]
# # Own sensors in ten minutes
#
# Two files become a checked panel, a forecast with intervals, and a score beside simple rules. The files here are
# made from the bundled data; put your own in their place.

# %%
from pathlib import Path
from tempfile import mkdtemp

import matplotlib.pyplot as plt
import pandas as pd

import candor

folder = Path(mkdtemp())
klamath = candor.load_dataset("klamath-daily")
times = klamath.times.local
readings = pd.DataFrame(klamath.values, columns=klamath.sensor_ids).assign(time=times)
readings.set_index("time").to_csv(folder / "readings.csv")
ids = klamath.sensor_ids
edges = {
    "from": [ids[one] for one in klamath.edges.source],
    "to": [ids[one] for one in klamath.edges.target],
    f"distance_{klamath.edges.distance_unit}": klamath.edges.distance,
}
pd.DataFrame(edges).to_csv(folder / "edges.csv", index=False)
print((folder / "readings.csv").read_text()[:200])

# %% [markdown]
# ## Read and check
#
# `read_panel` reads both files; what the files do not say (zone, unit) is said once. `check_panel` returns what
# is wrong, where, how often, and a hint.

# %%
options = candor.ReadOptions(unit="mg/L")
panel = candor.read_panel(folder / "readings.csv", folder / "edges.csv", options=options)
for finding in candor.check_panel(panel).findings:
    print(f"{finding.level}: {finding.what} ({finding.count})\n  hint: {finding.hint}")

# %% [markdown]
# ## Fit and score
#
# The record is cut by time into 60 % for training, 20 % for validation and 20 % for the test. `Linear` takes a
# second; `candor.Candor(history=28, horizon=14)` is the network and takes minutes.

# %%
task = candor.make_task(panel, candor.Protocol(history=28, horizon=14))
for model in (candor.LastValue(history=28, horizon=14), candor.Linear(history=28, horizon=14)):
    scores = candor.evaluate(model.fit(task.panel, task.split), task).overall()
    print(f"{model.name}: MAE {scores['mae']:.3f} {panel.unit}")

# %% [markdown]
# ## Forecast
#
# From the end of the record, with intervals made to hold 90 % of the readings.

# %%
made = model.predict_interval(panel, coverage=0.9)
sensor = panel.sensor_ids.index("11509370")
ahead = pd.date_range(times[-1], periods=15, freq="D")[1:]
figure, axes = plt.subplots(figsize=(9, 3.5), layout="constrained")
axes.plot(times[-90:], panel.values[-90:, sensor], color="black", label="readings")
lower, upper = made.lower[0, :, sensor], made.upper[0, :, sensor]
axes.fill_between(ahead, lower, upper, alpha=0.2, label="90 % interval")
axes.plot(ahead, made.forecast[0, :, sensor], label="forecast")
axes.set_ylabel(f"dissolved oxygen [{panel.unit}]")
axes.set_title(panel.sensors[sensor].name or panel.sensor_ids[sensor])
axes.legend(loc="lower left")
plt.show()

# %% [markdown]
# ## The same from the command line
#
#     candor data check readings.csv --edges edges.csv --unit mg/L
#     candor train readings.csv --edges edges.csv --unit mg/L horizon=14
#     candor evaluate runs/readings-candor
#     candor forecast runs/readings-candor --out forecast.csv
