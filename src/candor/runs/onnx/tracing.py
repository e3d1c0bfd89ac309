"""From a network to the operations it is made of, for batches of any size, and from those to ONNX."""

import builtins
import io
import logging
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from typing import Any

import torch
from torch import Tensor, nn

from candor.core.errors import InputError
from candor.core.text import first_line

_OURS = "candor."


def trace(graph: nn.Module, inputs: dict[str, Tensor], opset: int) -> Any:
    """Returns the ONNX program of a graph whose inputs have the batch first; its output is called `forecast`.

    Args:
        graph: takes the inputs in their order; its first parameter is one tensor, the others are a sequence.
        inputs: an example by name.
        opset: the version of ONNX's operators.
    """
    batch = torch.export.Dim("batch")
    shapes = ({0: batch}, tuple({0: batch} for _ in range(len(inputs) - 1)))
    try:
        with _quiet(), _lengths_of_any_size(graph), torch.no_grad():
            traced = torch.export.export(graph, tuple(inputs.values()), dynamic_shapes=shapes, strict=False)
            program = torch.onnx.export(
                traced, dynamo=True, input_names=list(inputs), output_names=["forecast"], opset_version=opset,
                verbose=False,
            )  # fmt: skip
    except RuntimeError as error:  # what the exporter raises is of this kind
        raise InputError(
            "this network cannot be written as an ONNX file: what it does depends on the readings themselves, or it "
            f"uses an operation that ONNX does not have ({first_line(_root(error))})",
            hint="make a bundle instead: candor export RUN --bundle FILE.zip",
        ) from None
    assert program is not None  # it is with dynamo=True
    _name_the_batch(program.model)
    _forget_the_machine(program.model)
    return program


def _root(error: Exception) -> Exception:
    """Returns what the first of a chain of exceptions was: the others speak of steps of the exporter."""
    return _root(error.__cause__) if isinstance(error.__cause__, Exception) else error


def _name_the_batch(model: Any) -> None:
    """Gives the axis of any size its name; the exporter calls it by numbers of its own.

    Shapes within the graph are left to whoever runs it: of some operations the exporter writes down wrong ones.
    """
    import onnx_ir

    graph = model.graph
    for node in graph.all_nodes():
        for value in node.outputs:
            if not value.is_graph_output():
                value.shape = None
    for value in (*graph.inputs, *graph.outputs):
        value.shape = onnx_ir.Shape(["batch", *value.shape[1:]])


def _forget_the_machine(model: Any) -> None:
    """Takes out what the exporter wrote about each operation: lines of code, with folders of this machine."""
    for node in model.graph.all_nodes():
        node.metadata_props.clear()
        node.doc_string = None
    for part in (model, model.graph, *model.graph.inputs, *model.graph.outputs):
        part.metadata_props.clear()


@contextmanager
def _lengths_of_any_size(network: nn.Module) -> Iterator[None]:
    """Lets `len(tensor)` in the files of a network be an axis of any size while it is traced.

    Python wants a number from `len`, so the batch of the example would become part of the graph. In those files it is
    made to mean `shape[0]`, which is the same number everywhere else.
    """
    homes = {kind.__module__ for module in network.modules() for kind in type(module).__mro__}
    files = [sys.modules[home] for home in sorted(homes) if home.startswith(_OURS)]
    for file in files:
        vars(file)["len"] = _length
    try:
        yield
    finally:
        for file in files:
            with suppress(KeyError):
                del vars(file)["len"]


def _length(given: Tensor | Sequence[Any]) -> Any:
    return given.shape[0] if isinstance(given, Tensor) and given.ndim else builtins.len(given)


@contextmanager
def _quiet() -> Iterator[None]:
    """Keeps back what the exporter says of its own parts: nobody who exports a model can act on it."""
    before, nowhere = logging.root.manager.disable, io.StringIO()
    logging.disable(logging.ERROR)
    try:
        with warnings.catch_warnings(), redirect_stdout(nowhere), redirect_stderr(nowhere):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)
