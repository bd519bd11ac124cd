"""Pictures of digits as strings: the outer contour of the largest stroke, walked clockwise.

Pixels of at least half the brightest value are ink; the largest 8-connected piece of ink is kept. The walk starts at
its topmost, then leftmost pixel. With 8 directions a letter is a step from one pixel of the contour to the next
(Freeman 1961; Moore neighbours); with 4 directions it is a step along the edge of a pixel, between ink and paper.
Letters count from ``"0"`` = right, clockwise. How the papers' own strings were made is not known.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import ndimage

from similia.core.jit import njit


def contour_strings(images: npt.NDArray[np.uint8], directions: int) -> list[str]:
    """Return the contour of each picture as a string.

    Parameters
    ----------
    images : ndarray of uint8, shape (n, height, width)
    directions : {4, 8}
        Size of the alphabet.

    Returns
    -------
    list of str
        One letter of ``"0123"`` or ``"01234567"`` a step; empty where a picture has no ink, or (with 8 directions)
        one pixel of it.
    """
    walk = _walk_edges if directions == 4 else _walk_pixels
    found = []
    for image in images:
        ink = _largest_piece(image >= max(1, int(image.max()) // 2))
        found.append("".join(map(str, walk(np.pad(ink, 1)).tolist())))
    return found


def _largest_piece(ink: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    pieces, n = ndimage.label(ink, structure=np.ones((3, 3)))
    return ink if n <= 1 else pieces == 1 + np.argmax(np.bincount(pieces.ravel())[1:])


@njit()
def _walk_edges(ink):  # type: ignore[no-untyped-def]
    """Directions along the edges of the ink, which stays on the right hand; `ink` has a margin of one pixel."""
    columns = ink.shape[1]
    found = np.empty(4 * ink.size, np.int64)
    n = 0
    for start in range(ink.size):
        if ink[start // columns, start % columns]:
            r, c = start // columns, start % columns  # a corner is named by the pixel to its lower right
            r0, c0, heading = r, c, 0
            while n == 0 or r != r0 or c != c0 or heading != 0:
                found[n] = heading
                n += 1
                r += (0, 1, 0, -1)[heading]
                c += (1, 0, -1, 0)[heading]
                # pixels ahead of the corner: left and right of the heading
                left = ink[r + (-1, 0, 0, -1)[heading], c + (0, 0, -1, -1)[heading]]
                right = ink[r + (0, 0, -1, -1)[heading], c + (0, -1, -1, 0)[heading]]
                if left:  # 8-connected ink: cross to the diagonal pixel
                    heading = (heading + 3) % 4
                elif not right:
                    heading = (heading + 1) % 4
            break
    return found[:n]


@njit()
def _walk_pixels(ink):  # type: ignore[no-untyped-def]
    """Directions from pixel to pixel along the outer contour, clockwise; `ink` has a margin of one pixel."""
    columns = ink.shape[1]
    found = np.empty(8 * ink.size, np.int64)
    dr = (0, 1, 1, 1, 0, -1, -1, -1)
    dc = (1, 1, 0, -1, -1, -1, 0, 1)
    n = 0
    for start in range(ink.size):
        if ink[start // columns, start % columns]:
            r, c = start // columns, start % columns
            heading, first = 0, -1
            while True:
                step = -1
                for turn in range(8):  # from hard left, clockwise
                    d = (heading + 6 + turn) % 8
                    if ink[r + dr[d], c + dc[d]]:
                        step = d
                        break
                if step < 0 or (n > 0 and r == start // columns and c == start % columns and step == first):
                    break
                if n == 0:
                    first = step
                found[n] = step
                n += 1
                r, c, heading = r + dr[step], c + dc[step], step
            break
    return found[:n]
