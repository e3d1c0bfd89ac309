"""Which library multiplies matrices: MKL uses half of what AMD's processors can do, and oneDNN all of it.

PyTorch takes oneDNN for products of single precision where lower precision is allowed. On processors without units for
lower precision it multiplies exactly all the same, which is checked before it is chosen.
"""

from pathlib import Path

import torch

_MOST_DIFFERENCE = 1e-5  # relative; a product of lower precision is off by a hundred times that


def choose_product_library() -> bool:
    """Take oneDNN where it is faster and exact; return whether it was taken."""
    matmul = torch.backends.mkldnn.matmul  # type: ignore[attr-defined]
    if not torch.backends.mkldnn.is_available() or not _is_amd():
        return False
    before = matmul.fp32_precision
    matmul.fp32_precision = "bf16"
    rows = torch.arange(512 * 64, dtype=torch.float64).remainder(997).div(997).view(512, 64) - 0.5
    exact = rows @ rows.T
    found = rows.float() @ rows.T.float()
    is_exact = bool((found - exact).abs().max() <= _MOST_DIFFERENCE * exact.abs().max())
    if not is_exact:
        matmul.fp32_precision = before
    return is_exact


def _is_amd() -> bool:
    path = Path("/proc/cpuinfo")
    return path.is_file() and "AuthenticAMD" in path.read_text(errors="replace")[:4096]
