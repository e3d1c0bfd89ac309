# %% [markdown]
# # Why this forecast
#
# The trained model that comes with candor forecasts dissolved oxygen at eleven stations of the Klamath River. One
# of its forecasts is taken apart: what the station's past was made of, what arrived along the river, which
# stations it listened to, and how much each branch counted. [Reading the explanations](../explanations.md) says
# what each number means, and [whether they are true](../truth.md) what of it was confirmed where the truth is
# known.

# %%
import matplotlib.pyplot as plt

import candor
from candor.runs.bundle import demo_bundle

panel = candor.load_dataset("klamath-daily")
model = candor.load_forecaster(demo_bundle())
found = model.explain(panel, sensor="11509370", time="2025-02-01")
print(found.sensor, found.unit, found.forecast[:3].round(2), "...")

# %% [markdown]
# ## The recent past, component by component
#
# Patches are overlapping stretches of the history. A component's strength says when there was much of it; it has
# no unit, so compare each with itself over time.

# %%
figure, rows = plt.subplots(4, 1, figsize=(9, 6), sharex=True, layout="constrained")
starts = [patch.start for patch in found.patches]
for axes, (name, component) in zip(rows, found.components.items(), strict=True):
    axes.step(starts, component.raw_strength, where="post")
    axes.set_ylabel(name)
figure.autofmt_xdate()
plt.show()

# %% [markdown]
# ## What arrived along the river
#
# `size` is how much arrived from a sender, `weight` the preference for it among all senders.

# %%
for one in sorted(found.contributions, key=lambda one: -one.size)[:5]:
    print(f"{one.sensor:>16} {one.direction:>8}: weight {one.weight:.2f}, size {one.size:.3g}")

# %% [markdown]
# ## Stations that behave alike
#
# `resemblance`, from -1 to 1, says who behaves alike; `weight` says what helped to predict.

# %%
for peer in sorted(found.peers, key=lambda peer: -peer.weight)[:5]:
    print(f"{peer.sensor:>16}: weight {peer.weight:.2f}, resemblance {peer.resemblance:.2f}")

# %% [markdown]
# ## How much each branch counted
#
# The three shares of each stretch of the forecast add up to one.

# %%
figure, axes = plt.subplots(figsize=(9, 3), layout="constrained")
places, below = range(len(found.fusion)), [0.0] * len(found.fusion)
for branch in ("functional", "forward", "reverse"):
    shares = [getattr(patch, branch) for patch in found.fusion]
    axes.bar(places, shares, bottom=below, label=branch)
    below = [one + share for one, share in zip(below, shares, strict=True)]
axes.set_xlabel("stretch of the forecast")
axes.set_ylabel("share")
axes.legend(ncols=3)
plt.show()

# %% [markdown]
# From the command line, with figures and two pages: `candor explain RUN --sensor 11509370 --time 2025-02-01`.
