"""Models for others: bundles to give away, and ONNX files for other programs (`candor.runs.onnx.onnx_file`)."""

from candor.runs.bundle.bundle import BundledRun, is_bundle, open_bundle, open_run, results_folder, write_bundle
from candor.runs.bundle.shipped import demo_bundle

__all__ = ["BundledRun", "demo_bundle", "is_bundle", "open_bundle", "open_run", "results_folder", "write_bundle"]
