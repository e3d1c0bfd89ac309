# %% [markdown]
# # Compare models
#
# Every model obeys one contract (`fit`, `predict`, `save`, `load`) and is scored on the same windows, mask and
# unit. Here four simple rules, one published network trained for a few epochs, and the trained model that comes
# with candor forecast the same test part of `klamath-daily`.

# %%
import matplotlib.pyplot as plt

import candor
from candor.forecasting import forecasters
from candor.runs.bundle import demo_bundle

panel = candor.load_dataset("klamath-daily")
protocol = candor.Protocol(history=28, horizon=14, first="2020-10-08", last="2025-03-04")
task = candor.make_task(panel, protocol)
print(f"{len(task.split.train)} training windows, {len(task.split.test)} test windows, {panel.unit}")
print(len(forecasters.names()), "models:", *forecasters.names()[:5], "...")

# %%
scores = {}
for name in ("last-value", "seasonal-naive", "historical-average", "linear"):
    model = forecasters.get(name)(history=28, horizon=14).fit(task.panel, task.split)
    scores[name] = candor.evaluate(model, task)
network = forecasters.get("dlinear")(history=28, horizon=14, recipe={"training": {"epochs": 5}}, seed=0)
scores["dlinear"] = candor.evaluate(network.fit(task.panel, task.split), task)
scores["candor"] = candor.evaluate(candor.load_forecaster(demo_bundle()), task)
for name, score in scores.items():
    overall = score.overall()
    print(f"{name:20} MAE {overall['mae']:.3f}  RMSE {overall['rmse']:.3f} {panel.unit}")

# %% [markdown]
# ## Step by step
#
# Errors grow with the horizon; where lines cross, another model is the better one for that step.

# %%
figure, axes = plt.subplots(figsize=(9, 4), layout="constrained")
for name, score in scores.items():
    if name != "historical-average":
        axes.plot(range(1, 15), score.scores.scores("step")["mae"], marker="o", label=name)
axes.set_xlabel("days ahead")
axes.set_ylabel(f"MAE [{panel.unit}]")
axes.legend()
plt.show()

# %% [markdown]
# Grids of models, tasks and seeds under one budget, resumable and on several machines: `candor benchmark SUITE`,
# see [Comparing models](../benchmark.md).
