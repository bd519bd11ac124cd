"""Conformal scores, sets and intervals by their definitions, label by label and number by number."""

from __future__ import annotations

from fractions import Fraction


def strangeness(values, label, score, turns=()):
    """Return the score of one label of an object with these probabilities or decision values of all labels."""
    others = [value for k, value in enumerate(values) if k != label]
    if score == "lac":
        return 1.0 - values[label]
    if score == "margin":
        return max(others) - values[label]
    before = [v for k, v in enumerate(values) if v > values[label] or (v == values[label] and k < label)]
    random = sum(v * t for v, t in zip(values, turns, strict=True)) % 1.0
    return sum(before) + random * values[label]


def p_value(score_of, label, calibration, by_class):
    """Return the p-value of `label`: ``score_of(model)`` is its score, `calibration` has (model, score, label)s."""
    known = [(model, score) for model, score, truth in calibration if truth == label or not by_class]
    return Fraction(1 + sum(score >= score_of(model) for model, score in known), 1 + len(known))


def interval(ends, coverage):
    """Return the jackknife+ interval of the pairs (center - width, center + width), one for each calibration object."""
    n, alpha = len(ends), 1 - Fraction(str(coverage))
    lower = int((n + 1) * alpha)  # rounded down
    upper = -int(-((n + 1) * (1 - alpha)) // 1)  # rounded up
    return sorted(low for low, _ in ends)[lower - 1], sorted(high for _, high in ends)[upper - 1]
