"""Bundles: models to give away."""

from candor.runs.bundle.bundle import demo_bundle, is_bundle, open_bundle, open_run, results_folder, write_bundle

__all__ = ["demo_bundle", "is_bundle", "open_bundle", "open_run", "results_folder", "write_bundle"]
