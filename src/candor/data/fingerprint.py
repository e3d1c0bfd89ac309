"""The SHA-256 of what a panel says, whatever file it came from.

Every part (header, readings, edges, each covariate) has a digest of its own and the fingerprint is the digest of
those, so that a generator which writes readings and covariates in pieces can hash them as they pass.
"""

import hashlib
import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

_ROWS_AT_A_TIME = 4096


class ArrayDigest:
    """The digest of a float32 array fed row block by row block; every NaN counts as the same NaN."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()

    def update(self, rows: NDArray[np.float32]) -> "ArrayDigest":
        """Feeds further rows."""
        for first in range(0, len(rows), _ROWS_AT_A_TIME):
            block = np.array(rows[first : first + _ROWS_AT_A_TIME], dtype="<f4", order="C")
            block[np.isnan(block)] = np.nan
            block += 0.0  # minus zero reads as zero
            self._hash.update(block.tobytes())
        return self

    def hexdigest(self) -> str:
        """Returns the digest of all rows fed so far."""
        return self._hash.hexdigest()


def digest_of(parts: dict[str, Any]) -> str:
    """Returns the SHA-256 of a JSON-like structure in one canonical spelling."""
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()
