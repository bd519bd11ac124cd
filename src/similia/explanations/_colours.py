"""Colours of what adds to a value and what takes from it: blue and orange, which the colour-blind can tell apart."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

FOR = (0, 114, 178)  # Okabe & Ito, "Color universal design", 2008
AGAINST = (213, 94, 0)
GREY = "#9a9a9a"


def strengths(shares: npt.NDArray[np.float64] | None, n: int, kind: str) -> npt.NDArray[np.float64]:
    """Return a number from -1 to 1 for each place: above 0 for what makes alike (or is for the decision)."""
    if shares is None or len(shares) != n or not np.abs(shares).max(initial=0.0):
        return np.zeros(n)
    sign = -1.0 if "distance" in kind else 1.0
    return sign * shares / np.abs(shares).max()


def shade(strength: float) -> str:
    """Return white blended with blue or orange, as ``#rrggbb``."""
    target = FOR if strength >= 0 else AGAINST
    # Faint places stay visible; the full colour leaves black letters readable.
    amount = 0.0 if strength == 0 else 0.12 + 0.68 * min(1.0, abs(strength))
    return "#" + "".join(f"{round(255 + amount * (c - 255)):02x}" for c in target)


def full(strength: float) -> str:
    """Return blue or orange, as ``#rrggbb``."""
    return "#" + "".join(f"{c:02x}" for c in (FOR if strength >= 0 else AGAINST))
