"""Simulated radio: symbols of five modulations, shaped, turned in phase and buried in noise.

It stands in for recordings that could not be had. Each signal is 512 samples of four channels: the in-phase and the
quadrature part, amplitude and change of phase. Per signal: eight samples a symbol with a random offset in time, a
random carrier phase, a small frequency error, and white noise at a random ratio of 0 to 12 dB.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from similia.objects import SeriesBatch

MODULATIONS = ("BPSK", "QPSK", "8PSK", "16QAM", "2FSK")
N_SAMPLES = 512
SAMPLES_PER_SYMBOL = 8


def simulated_radio(n: int, seed: int = 0) -> tuple[SeriesBatch, npt.NDArray]:
    """Return n signals (float32) and their modulations, in equal numbers, in random order."""
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.arange(n) % len(MODULATIONS))
    signals = [_channels(_signal(MODULATIONS[label], rng)) for label in labels]
    return SeriesBatch.from_arrays(signals), np.array(MODULATIONS)[labels]


def _signal(modulation: str, rng: np.random.Generator) -> npt.NDArray[np.complex128]:
    n_symbols = N_SAMPLES // SAMPLES_PER_SYMBOL + 4
    if modulation == "2FSK":
        steps = np.repeat(rng.choice([-1.0, 1.0], n_symbols), SAMPLES_PER_SYMBOL)
        wave = np.exp(1j * np.pi * 0.5 * np.cumsum(steps) / SAMPLES_PER_SYMBOL)
    else:
        impulses = np.zeros(n_symbols * SAMPLES_PER_SYMBOL, dtype=complex)
        impulses[::SAMPLES_PER_SYMBOL] = _symbols(modulation, n_symbols, rng)
        wave = np.convolve(impulses, np.hanning(2 * SAMPLES_PER_SYMBOL + 1), mode="same")
    start = rng.integers(SAMPLES_PER_SYMBOL, 3 * SAMPLES_PER_SYMBOL)
    wave = wave[start : start + N_SAMPLES] / np.sqrt(np.mean(np.abs(wave) ** 2))
    turn = rng.uniform(0, 2 * np.pi) + rng.normal(0, 0.5) * np.arange(N_SAMPLES) / N_SAMPLES
    noise = rng.standard_normal((2, N_SAMPLES))
    ratio = 10 ** (-rng.uniform(0, 12) / 20)
    return wave * np.exp(1j * turn) + ratio / np.sqrt(2) * (noise[0] + 1j * noise[1])


def _symbols(modulation: str, n: int, rng: np.random.Generator) -> npt.NDArray:
    if modulation == "16QAM":
        levels = np.array([-3.0, -1.0, 1.0, 3.0]) / np.sqrt(10)
        return rng.choice(levels, n) + 1j * rng.choice(levels, n)
    order = {"BPSK": 2, "QPSK": 4, "8PSK": 8}[modulation]
    return np.exp(2j * np.pi * (rng.integers(order, size=n) + 0.5) / order)


def _channels(signal: npt.NDArray[np.complex128]) -> npt.NDArray[np.float32]:
    change = np.angle(signal * np.conj(np.roll(signal, 1)))
    change[0] = 0.0
    return np.column_stack([signal.real, signal.imag, np.abs(signal), change]).astype(np.float32)
