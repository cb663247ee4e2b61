#!/usr/bin/env python3
"""Prints the tables of src/quant/codebook.cpp: Lloyd-Max levels of N(0,1), positive halves, 17 digits.

A level is the mean of its cell, cells meet at midpoints. Newton on level - mean(cell) with the tridiagonal Jacobian,
in 50-digit decimals (plain Lloyd iteration stalls far from the optimum above 5 bits). Standard library only.
"""

from decimal import Decimal as Real
from decimal import getcontext
from statistics import NormalDist

getcontext().prec = 50
PI = Real("3.14159265358979323846264338327950288419716939937511")


def density(x):
    return (-x * x / 2).exp() / (2 * PI).sqrt()


def upper_tail(x):
    """P(X > x) for 0 <= x < 6: one half less the Taylor series of the density's integral."""
    term = total = x
    n = 0
    while abs(term) > Real(10) ** -48:
        n += 1
        term *= -x * x / (2 * n)
        total += term / (2 * n + 1)
    return Real("0.5") - total / (2 * PI).sqrt()


def residual(levels):
    """level - mean(cell) of each positive cell and its derivatives by the level below, itself and the level above."""
    bounds = [Real(0)] + [(a + b) / 2 for a, b in zip(levels, levels[1:])]
    densities = [density(b) for b in bounds] + [Real(0)]
    tails = [upper_tail(b) for b in bounds] + [Real(0)]
    rows = []
    for i, level in enumerate(levels):
        mass = tails[i] - tails[i + 1]
        mean = (densities[i] - densities[i + 1]) / mass
        below = densities[i] * (mean - bounds[i]) / mass / 2 if i else Real(0)
        above = densities[i + 1] * (bounds[i + 1] - mean) / mass / 2 if i + 1 < len(levels) else Real(0)
        rows.append((-below, 1 - below - above, -above, level - mean))
    return rows


def newton_step(levels):
    """Thomas' algorithm on the tridiagonal system."""
    rows = residual(levels)
    upper, right = [], []
    for i, (a, b, c, r) in enumerate(rows):
        pivot = b - a * upper[i - 1] if i else b
        upper.append(c / pivot)
        right.append((r - a * right[i - 1] if i else r) / pivot)
    step = [Real(0)] * len(levels)
    for i in reversed(range(len(levels))):
        step[i] = right[i] - (upper[i] * step[i + 1] if i + 1 < len(levels) else 0)
    return [x - s for x, s in zip(levels, step)], max(abs(s) for s in step)


def lloyd_max(bits):
    # The companding density of the optimum is the cube root of the normal one: that of N(0,3).
    start = NormalDist(0, 3**0.5)
    half = 2 ** (bits - 1)
    levels = [Real(start.inv_cdf((half + i + 0.5) / (2 * half))) for i in range(half)]
    step = Real(1)
    while step > Real(10) ** -35:
        levels, step = newton_step(levels)
    return levels


for bits in (2, 3, 4, 5, 6, 8):
    numbers = [f"{level:.17g}" for level in map(float, lloyd_max(bits))]
    print(f"constexpr double kLevels{bits}[] = {{{', '.join(numbers)}}};")
