"""Trains in a process of its own that saves after every step: `train_and_be_killed.py FOLDER`. To be killed at will."""

import sys
from pathlib import Path

from tiny import PROTOCOL, tiny_recipe

import candor.training.batch_plan
import candor.training.loop
from candor.forecasting.contract import sample_panel
from candor.runs.fit import resume_run, train_model
from candor.training.batch_plan import BatchPlan

if __name__ == "__main__":
    candor.training.loop.SECONDS_BETWEEN_SAVES = 0.0
    candor.training.batch_plan._fastest = lambda *_: BatchPlan(micro_batch=16, workers=2)
    folder = Path(sys.argv[1])
    print("begun", flush=True)
    if (folder / "run.json").exists():
        resume_run(folder)
    else:
        settings = {"recipe": tiny_recipe()}
        train_model(sample_panel(), PROTOCOL, "candor", settings, folder, is_catalogued=False)
