"""Names of arrays by what they hold."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating]
"""Of any precision."""
Doubles = NDArray[np.float64]
Integers = NDArray[np.integer]
"""Of any width."""
Booleans = NDArray[np.bool_]
