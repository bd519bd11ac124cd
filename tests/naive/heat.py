"""Slow, obvious twins of the heat kernel on the sphere: the series term by term in 60 digits; images on the circle."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext


def heat_kernel_and_gradient(u, n, t, digits=60):
    """(K, dK/dt, sum of w_l |lambda_l - mean lambda|) at the versine u, by the definition, to 48 digits."""
    with localcontext(prec=digits, Emax=10**9, Emin=-(10**9)):
        x, t = 1 - Decimal(u), Decimal(t)
        decay, faster = (-(n - 1) * t).exp(), (-2 * t).exp()
        w, p, p_next, terms, total = Decimal(1), Decimal(1), x, [], Decimal(0)
        for l in range(10**7):
            terms.append((w, Decimal(l * (l + n - 2)), p))
            total += w
            dimensions = Decimal(2) if l == 0 and n == 2 else Decimal((2 * l + n) * (l + n - 2 or 1))
            ratio = dimensions / ((2 * l + n - 2 or 1) * (l + 1)) * decay
            w, decay = w * ratio, decay * faster
            if ratio < Decimal("0.999") and w < total * Decimal("1e-48"):
                break
            l += 1
            p, p_next = p_next, ((2 * l + n - 2) * x * p_next - l * p) / (l + n - 2)
        mean = sum(w * eigenvalue for w, eigenvalue, _ in terms) / total
        kernel = sum(w * p for w, _, p in terms) / total
        gradient = sum(w * (mean - eigenvalue) * p for w, eigenvalue, p in terms) / total
        return float(kernel), float(gradient), float(sum(w * abs(mean - e) for w, e, _ in terms) / total)


def heat_kernel(u, n, t):
    return heat_kernel_and_gradient(u, n, t)[0]


def circle_by_images(u, t):
    """The kernel on the circle (n = 2): the Gaussian of the line, wrapped around it."""
    angle = 2 * math.asin(math.sqrt(u / 2))
    wrapped = [sum(math.exp(-((a + 2 * math.pi * k) ** 2) / (4 * t)) for k in range(-20, 21)) for a in (angle, 0.0)]
    return wrapped[0] / wrapped[1]
