"""Drawings of fifteen letters as graphs: ends and crossings of strokes are nodes with coordinates, strokes are edges.

A drawing is its letter, sheared and turned a little; its nodes are shaken, some strokes are cut in two, and some are
left out or drawn where none belongs.
"""

from __future__ import annotations

import itertools

import numpy as np
import numpy.typing as npt

from similia.objects import GraphBatch

_LETTERS = {  # polylines through points of a grid, x and y from 0 to 4
    "A": ("00 24 40", "12 32"),
    "E": ("40 00 04 44", "02 32"),
    "F": ("00 04 44", "02 32"),
    "H": ("00 04", "40 44", "02 42"),
    "I": ("20 24",),
    "K": ("00 04", "44 02 40"),
    "L": ("04 00 40",),
    "M": ("00 04 22 44 40",),
    "N": ("00 04 40 44",),
    "T": ("20 24", "04 44"),
    "V": ("04 20 44",),
    "W": ("04 10 22 30 44",),
    "X": ("00 44", "04 40"),
    "Y": ("20 22", "04 22 44"),
    "Z": ("04 44 00 40",),
}  # fmt: skip
SHAKE, TURN, CUT, LOST, WRONG = 0.45, 0.25, 0.3, 0.1, 0.3  # of a grid step; radians; shares of strokes and of drawings


def draw(n: int, seed: int = 0) -> tuple[GraphBatch, npt.NDArray[np.str_]]:
    """Return `n` drawings of letters, as many of each as can be, and the letters."""
    random = np.random.default_rng(seed)
    labels = np.resize(sorted(_LETTERS), n)
    points, arcs, sizes = [], [], [0]
    for letter in labels:
        nodes, strokes = _distorted(*_strokes(letter), random)
        arcs += [(sizes[-1] + a, sizes[-1] + b) for pair in strokes for a, b in (pair, pair[::-1])]
        points.append(nodes)
        sizes.append(sizes[-1] + len(nodes))
    return GraphBatch.from_arrays(sizes, np.transpose(arcs), node_attributes=np.concatenate(points)), labels


def _strokes(letter: str) -> tuple[npt.NDArray[np.float64], list[tuple[int, int]]]:
    """Return the points of a letter, and its strokes as pairs of points."""
    lines = [[(int(point[0]), int(point[1])) for point in line.split()] for line in _LETTERS[letter]]
    number = {point: i for i, point in enumerate(dict.fromkeys(point for line in lines for point in line))}
    strokes = [(number[a], number[b]) for line in lines for a, b in itertools.pairwise(line)]
    return np.array(list(number), dtype=np.float64), strokes


def _distorted(
    points: npt.NDArray[np.float64], strokes: list[tuple[int, int]], random: np.random.Generator
) -> tuple[npt.NDArray[np.float64], list[tuple[int, int]]]:
    """Return the points and strokes of a drawing of a letter."""
    kept = [stroke for stroke in strokes if random.random() > LOST] or strokes[:1]
    if random.random() < WRONG and len(points) > 2:
        a, b = sorted(random.choice(len(points), 2, replace=False).tolist())
        kept = sorted({*kept, (a, b)})
    nodes, drawn = list(points), []
    for a, b in kept:
        if random.random() < CUT:
            nodes.append(nodes[a] + random.uniform(0.3, 0.7) * (nodes[b] - nodes[a]))
            drawn += [(a, len(nodes) - 1), (len(nodes) - 1, b)]
        else:
            drawn.append((a, b))
    angle = random.normal(0, TURN)
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    shear = np.eye(2) + random.normal(0, 0.15, (2, 2))
    return np.array(nodes) @ shear @ turn + random.normal(0, SHAKE, (len(nodes), 2)), drawn
