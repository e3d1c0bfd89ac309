# %% [markdown]
# # A river
#
# A basin is a panel whose edges follow the water: from each station to the stations downstream, with the distance
# along the river. `candor data build-river` makes one from public services ([how](../river.md)); here it is the
# bundled Klamath.

# %%
import matplotlib.pyplot as plt
import numpy as np

import candor
from candor.explain.places import picture_river_map
from candor.render.figures.maps import draw_river_map
from candor.river import toolbox

panel = candor.load_dataset("klamath-daily")
names = {sensor.id: sensor.name or sensor.id for sensor in panel.sensors}
print(f"{len(panel.sensors)} stations, {len(panel.edges.source)} edges, {panel.times.length:,} days")

# %% [markdown]
# ## The map

# %%
draw_river_map(picture_river_map(panel)).figure

# %% [markdown]
# ## In the order of the water
#
# Upstream stations come first.

# %%
upstream = toolbox.upstream_sets(panel)
for sensor in toolbox.topological_order(panel):
    print(f"{names[sensor]:60} {len(upstream[sensor])} upstream")

# %% [markdown]
# ## Does a change travel?
#
# Day-to-day changes of each pair of joined stations are correlated at lags of some days; a peak at a positive lag
# means that the change is seen upstream first. Daily means are coarse for a river that travels faster than that.

# %%
changes = np.diff(panel.values, axis=0)
lags = range(-5, 6)


def correlation(sender: np.ndarray, receiver: np.ndarray, lag: int) -> float:
    if lag < 0:
        return correlation(receiver, sender, -lag)
    early, late = sender[: len(sender) - lag], receiver[lag:]
    known = ~np.isnan(early) & ~np.isnan(late)
    return float(np.corrcoef(early[known], late[known])[0, 1]) if known.sum() > 30 else np.nan


figure, axes = plt.subplots(figsize=(9, 4), layout="constrained")
direct = np.flatnonzero(toolbox.direct_edges(panel))[:6]
for sender, receiver in zip(panel.edges.source[direct], panel.edges.target[direct], strict=True):
    curve = [correlation(changes[:, sender], changes[:, receiver], lag) for lag in lags]
    axes.plot(lags, curve, marker=".", label=f"{panel.sensor_ids[sender]} to {panel.sensor_ids[receiver]}")
axes.set_xlabel("lag [days]")
axes.set_ylabel("correlation of changes")
axes.legend(fontsize=7)
plt.show()

# %% [markdown]
# ## Forecast every station
#
# Two weeks ahead, scored station by station on the last fifth of the record.

# %%
protocol = candor.Protocol(history=28, horizon=14, first="2020-10-08", last="2025-03-04")
task = candor.make_task(panel, protocol)
model = candor.Linear(history=28, horizon=14).fit(task.panel, task.split)
scores = candor.evaluate(model, task)
for sensor, error in zip(panel.sensor_ids, scores.scores.scores("sensor")["mae"], strict=True):
    print(f"{names[sensor]:60} MAE {error:.3f} {panel.unit}")
