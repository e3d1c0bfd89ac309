"""Sums along edges and products across them, against dense matrices and numerical gradients."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from candor.nets.candor.routes import Routes, meet, spread


def routes_of(matrix: torch.Tensor) -> tuple[Routes, torch.Tensor]:
    """Returns the routes along the non-zero entries (receiver, sender) of a matrix, and those entries."""
    receiver, sender = matrix.nonzero().T
    return Routes.of(receiver, sender, torch.argsort(sender, stable=True), *matrix.shape), matrix[receiver, sender]


@given(st.integers(1, 6), st.integers(1, 6), st.floats(0, 1), st.integers(1, 4), st.integers(0, 10**6))
def test_spreading_is_the_product_with_the_matrix(
    rows: int, columns: int, density: float, copies: int, seed: int
) -> None:
    torch.manual_seed(seed)
    matrix = torch.rand(rows, columns).double() * (torch.rand(rows, columns) < density)
    routes, weights = routes_of(matrix)
    features = torch.randn(copies, columns, 3).double()
    repeated, many = routes.repeated(copies), weights.repeat(copies)
    found = spread(repeated, many, many[repeated.turn], features.flatten(0, 1))
    torch.testing.assert_close(found.view(copies, rows, 3), matrix @ features)


@given(st.integers(1, 6), st.integers(1, 6), st.floats(0, 1), st.integers(0, 10**6))
def test_meeting_is_the_product_of_both_ends(rows: int, columns: int, density: float, seed: int) -> None:
    torch.manual_seed(seed)
    matrix = (torch.rand(rows, columns) < density).double()
    routes, _ = routes_of(matrix)
    left, right = torch.randn(rows, 4).double(), torch.randn(columns, 4).double()
    torch.testing.assert_close(meet(routes, left, right), (left @ right.T)[matrix.bool()])


def test_both_have_the_gradients_of_what_they_compute() -> None:
    torch.manual_seed(0)
    routes, weights = routes_of(torch.rand(5, 4).double() * (torch.rand(5, 4) < 0.5))
    weights = weights.requires_grad_()
    left = torch.randn(5, 3, dtype=torch.float64, requires_grad=True)
    right = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda w, x: spread(routes, w, w.detach()[routes.turn], x), (weights, right))
    assert torch.autograd.gradcheck(lambda x, y: meet(routes, x, y), (left, right))
