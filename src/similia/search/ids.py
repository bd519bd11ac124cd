"""Ids of codes: distinct integers from 0 to 2^63 - 1."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

MAX_ID = 2**63 - 1

Ids = npt.NDArray[np.int64]


def count_on(next_id: int, n: int) -> Ids:
    """Return the `n` ids from `next_id` on."""
    if next_id + n > MAX_ID + 1:
        raise ValueError(f"ids cannot be counted on from {next_id}: they end at 2**63 - 1; give ids")
    return np.arange(next_id, next_id + n, dtype=np.int64) if n else np.empty(0, np.int64)


def check_ids(ids: Any, n: int | None = None) -> Ids:
    """Return ids as distinct int64 >= 0, as many as `n`, or raise."""
    ids = np.asarray(ids)
    if ids.ndim != 1 or (ids.size and ids.dtype.kind not in "iu"):
        raise ValueError(f"ids must be a 1-D array of integers, got dtype {ids.dtype} and shape {ids.shape}")
    if n is not None and len(ids) != n:
        raise ValueError(f"ids has {len(ids)} entries for {n} codes; give one id per code")
    if ids.dtype == np.uint64 and ids.size and ids.max() > MAX_ID:
        raise ValueError(f"ids[{ids.argmax()}] is {ids.max()}, expected at most 2**63 - 1")
    ids = ids.astype(np.int64)
    if ids.size and ids.min() < 0:
        raise ValueError(f"ids[{ids.argmin()}] is {ids.min()}, expected ids >= 0")
    if ids.size > 1 and not (ids[1:] > ids[:-1]).all():
        order = np.argsort(ids, kind="stable")
        same = ids[order[1:]] == ids[order[:-1]]
        if same.any():
            i = int(np.argmax(same))
            raise ValueError(f"ids[{order[i]}] and ids[{order[i + 1]}] are both {ids[order[i]]}; ids must be unique")
    return ids
