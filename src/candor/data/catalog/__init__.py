"""The datasets that candor knows by name, one file each.

To add one, write a file here with a function that returns a `Panel`, decorated with `@dataset(...)`; the docstring of
the file holds its facts, and `candor data info NAME` prints it.
"""

from dataclasses import replace
from importlib import import_module
from pkgutil import iter_modules

from candor.data.catalog.registry import Dataset, dataset, datasets
from candor.data.panel import Panel

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")


def load_dataset(name: str) -> Panel:
    """Return the panel of the dataset called `name`, under that name: runs find their data again by it."""
    return replace(datasets.get(name).load(), name=name)


__all__ = ["Dataset", "dataset", "datasets", "load_dataset"]
