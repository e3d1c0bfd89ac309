"""The operations of the network that have a fast form beside the plain one.

Every call stands for a few lines of ordinary torch, written beside it as `..._plain`; tests hold the two to the same
values and gradients. `dispatch.py` says which form is used when; `plain()` asks for the plain ones.
"""

from candor.nets.candor.ops.attention import KeyValueCache, attend
from candor.nets.candor.ops.decoding import Supervision, decoded_errors
from candor.nets.candor.ops.dispatch import is_plain, plain
from candor.nets.candor.ops.gates import add_gated, gated_step
from candor.nets.candor.ops.linear import read_normalised
from candor.nets.candor.ops.pairs import gather_pairs, pair_scores, top_k_pairs
from candor.nets.candor.ops.sparse import EdgeList, SparseMatrix, sddmm, spmm

__all__ = [
    "EdgeList",
    "KeyValueCache",
    "SparseMatrix",
    "Supervision",
    "add_gated",
    "attend",
    "decoded_errors",
    "gated_step",
    "gather_pairs",
    "is_plain",
    "pair_scores",
    "plain",
    "read_normalised",
    "sddmm",
    "spmm",
    "top_k_pairs",
]  # fmt: skip
