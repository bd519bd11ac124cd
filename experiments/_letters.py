"""Distorted drawings of the fifteen capital letters of straight strokes, as graphs with coordinates on nodes."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

# Corners (x, y), and the strokes between them.
LETTERS: dict[str, tuple[list[tuple[float, float]], list[tuple[int, int]]]] = {
    "A": ([(0, 0), (0.5, 2), (1, 0), (0.25, 1), (0.75, 1)], [(0, 3), (3, 1), (1, 4), (4, 2), (3, 4)]),
    "E": ([(0, 0), (0, 1), (0, 2), (1, 0), (0.8, 1), (1, 2)], [(0, 1), (1, 2), (0, 3), (1, 4), (2, 5)]),
    "F": ([(0, 0), (0, 1), (0, 2), (0.8, 1), (1, 2)], [(0, 1), (1, 2), (1, 3), (2, 4)]),
    "H": ([(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)], [(0, 1), (1, 2), (3, 4), (4, 5), (1, 4)]),
    "I": ([(0.5, 0), (0.5, 2)], [(0, 1)]),
    "K": ([(0, 0), (0, 1), (0, 2), (1, 0), (1, 2)], [(0, 1), (1, 2), (1, 3), (1, 4)]),
    "L": ([(0, 2), (0, 0), (1, 0)], [(0, 1), (1, 2)]),
    "M": ([(0, 0), (0, 2), (0.5, 1), (1, 2), (1, 0)], [(0, 1), (1, 2), (2, 3), (3, 4)]),
    "N": ([(0, 0), (0, 2), (1, 0), (1, 2)], [(0, 1), (1, 2), (2, 3)]),
    "T": ([(0, 2), (0.5, 2), (1, 2), (0.5, 0)], [(0, 1), (1, 2), (1, 3)]),
    "V": ([(0, 2), (0.5, 0), (1, 2)], [(0, 1), (1, 2)]),
    "W": ([(0, 2), (0.25, 0), (0.5, 1), (0.75, 0), (1, 2)], [(0, 1), (1, 2), (2, 3), (3, 4)]),
    "X": ([(0, 0), (0.5, 1), (1, 2), (0, 2), (1, 0)], [(0, 1), (1, 2), (3, 1), (1, 4)]),
    "Y": ([(0, 2), (0.5, 1), (1, 2), (0.5, 0)], [(0, 1), (1, 2), (1, 3)]),
    "Z": ([(0, 2), (1, 2), (0, 0), (1, 0)], [(0, 1), (1, 2), (2, 3)]),
}


def letters(n_each: int = 105, random_state: int = 0) -> tuple[list[dict[str, Any]], npt.NDArray[Any]]:
    """Return (graphs, names of the letters): `n_each` drawings of each letter."""
    rng = np.random.default_rng(random_state)
    names = np.repeat(sorted(LETTERS), n_each)
    return [drawing(rng, *LETTERS[name]) for name in names], names


def drawing(
    rng: np.random.Generator, corners: Any, strokes: Any, jitter: float = 0.2, change: float = 0.3, turn: float = 0.2
) -> dict[str, Any]:
    """Return one distorted drawing as a graph.

    With a probability of about a third each, a stroke gets a corner in its middle, a stroke is lost, and two corners
    are joined. Then all corners move by normal shifts of standard deviation `jitter`, and the drawing is turned,
    slanted and stretched.
    """
    points, edges = np.array(corners, float), [*strokes]
    if rng.random() < change * len(edges) / 2:
        u, v = edges.pop(rng.integers(len(edges)))
        points, edges = np.vstack([points, (points[u] + points[v]) / 2]), [*edges, (u, len(points)), (len(points), v)]
    if len(edges) > 1 and rng.random() < change:
        edges.pop(rng.integers(len(edges)))
    if rng.random() < change:
        u, v = rng.choice(len(points), 2, replace=False).tolist()
        edges = edges if {(u, v), (v, u)} & {*edges} else [*edges, (u, v)]
    angle, slant = rng.normal(scale=turn, size=2)
    rotation = [[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]]
    stretched = np.array([[1, 0], [slant, 1]]) * np.exp(rng.normal(scale=turn / 2, size=2))
    moved = (points + rng.normal(scale=jitter, size=points.shape) - [0.5, 1]) @ rotation @ stretched
    arcs = np.array(edges).T
    return {"edge_index": np.hstack([arcs, arcs[::-1]]), "n_nodes": len(points), "node_attributes": moved}
