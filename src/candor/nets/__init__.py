"""Networks as plain modules: CANDOR, the published baselines, and the layers they share."""
