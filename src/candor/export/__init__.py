"""Models for others: bundles to give away, and ONNX files for other programs (`candor.export.onnx_file`)."""

from candor.export.bundle import BundledRun, is_bundle, open_bundle, open_run, results_folder, write_bundle
from candor.export.shipped import demo_bundle

__all__ = ["BundledRun", "demo_bundle", "is_bundle", "open_bundle", "open_run", "results_folder", "write_bundle"]
