# SPDX-License-Identifier: BSD-3-Clause
"""Derives every polynomial and table of kernels/include/openmps_math.

Minimax fits by linear programming on top of 60-digit arithmetic. Coefficients are rounded to their working
format one by one, lowest power first, and the rest is fitted again after each rounding, so that the
printed error is the error of the rounded polynomial. Run it to print all constants; nothing reads
its output automatically.
"""
import struct
import sys

import mpmath as mp
import numpy as np
from scipy.optimize import linprog

mp.mp.dps = 60


def round_to(value, fmt):
    """Round a high-precision number to 'f' (float) or 'd' (double), as a high-precision number."""
    if fmt == "f":  # through more digits than double has is not needed for free coefficients
        return mp.mpf(float(np.float32(float(value))))
    return mp.mpf(float(value))


def minimax(function, powers, low, high, weight, points=260):
    """Coefficients c with minimal max |weight(x) * (sum c_i x^p_i - function(x))| on [low, high].

    A least-squares fit in high precision first; then a linear program in double for the correction,
    scaled so that its tolerances do not matter.
    """
    low, high = mp.mpf(low), mp.mpf(high)
    grid = [(low + high) / 2 - (high - low) / 2 * mp.cos(mp.pi * (i + mp.mpf(1) / 2) / points) for i in range(points)]
    columns = [[weight(x) * x ** p for x in grid] for p in powers]
    target = [weight(x) * function(x) for x in grid]
    sparse = range(0, points, 4)
    rows = mp.matrix([[column[i] for column in columns] for i in sparse])
    start = mp.lu_solve(rows, mp.matrix([target[i] for i in sparse]))
    residual = [t - sum(start[j] * columns[j][i] for j in range(len(powers))) for i, t in enumerate(target)]
    peak = max(abs(r) for r in residual)
    scales = [max(abs(v) for v in column) for column in columns]
    matrix = np.array([[float(columns[j][i] / scales[j]) for j in range(len(powers))] for i in range(points)])
    wanted = np.array([float(r / peak) for r in residual])
    ones = np.ones((points, 1))
    program = linprog(np.r_[np.zeros(len(powers)), 1.0],
                      A_ub=np.block([[matrix, -ones], [-matrix, -ones]]), b_ub=np.r_[wanted, -wanted],
                      bounds=[(None, None)] * len(powers) + [(0, None)])
    if program.x is None:
        return [start[j] for j in range(len(powers))]
    return [start[j] + mp.mpf(program.x[j]) * peak / scales[j] for j in range(len(powers))]


def fit(name, function, powers, low, high, weight, fmt, fixed=()):
    """Fit, round coefficient by coefficient, print. `fixed` are (power, value) known exactly."""
    done = [(p, mp.mpf(v)) for p, v in fixed]
    left = list(powers)
    while left:
        def rest(x):
            return function(x) - sum(c * x ** p for p, c in done)
        coefficients = minimax(rest, left, low, high, weight)
        done.append((left[0], round_to(coefficients[0], fmt)))
        left.pop(0)
    worst = 0
    for i in range(1, 2000):
        x = mp.mpf(low) + (mp.mpf(high) - mp.mpf(low)) * i / 2000
        worst = max(worst, abs(weight(x) * (sum(c * x ** p for p, c in done) - function(x))))
    print(f"// {name} on [{float(low):.6g}, {float(high):.6g}], max error 2^{float(mp.log(worst, 2)):.1f}")
    for p, c in done[len(fixed):]:
        if fmt == "f":
            print(f"//   x^{p}: {np.float32(float(c))!r}".replace("np.float32(", "").replace(")", "f"))
        else:
            print(f"//   x^{p}: 0x{struct.unpack('<Q', struct.pack('<d', float(c)))[0]:016x}  {float(c)!r}")
    return done


def one(_):
    return mp.mpf(1)


def relative(function):
    tiny = mp.mpf(10) ** -20  # weights are asked for at 0 too, where the quotient has a limit
    return lambda x: 1 / abs(function(x if x else tiny))


FITS = {}


def register(name):
    def wrap(make):
        FITS[name] = make
        return make
    return wrap


HALF_LN2 = mp.log(2) / 2 * mp.mpf("1.0005")
SQRT_HALF = mp.sqrt(mp.mpf(1) / 2)


@register("exp")
def _():
    fit("exp(r) = 1 + r + r^2*(c2 + ...)", mp.exp, range(2, 7), -HALF_LN2, HALF_LN2, one, "f", [(0, 1), (1, 1)])


@register("expm1")
def _():
    fit("expm1(r) = r + r^2*(1/2 + ...), relative", mp.expm1, range(3, 8), -HALF_LN2, HALF_LN2,
        relative(mp.expm1), "f", [(1, 1), (2, 0.5)])


@register("exp2")
def _():
    fit("2^r = 1 + r*(c1 + ...)", lambda x: mp.mpf(2) ** x, range(1, 7), -0.5003, 0.5003, one, "f", [(0, 1)])


@register("exp10")
def _():
    bound = mp.log10(2) / 2 * mp.mpf("1.0005")
    fit("10^r = 1 + r*(c1 + ...)", lambda x: mp.mpf(10) ** x, range(1, 8), -bound, bound, one, "f", [(0, 1)])


@register("log1p")
def _():
    fit("log(1+f) = f - f^2/2 + f^3*(c3 + ...), relative", mp.log1p, range(3, 11), SQRT_HALF - 1, mp.sqrt(2) - 1,
        relative(mp.log1p), "f", [(1, 1), (2, -0.5)])


@register("sin")
def _():
    fit("sin(r), relative", mp.sin, range(3, 10, 2), 0, "0.8345", relative(mp.sin), "d", [(1, 1)])
    fit("cos(r)", mp.cos, range(4, 11, 2), 0, "0.8345", one, "d", [(0, 1), (2, -0.5)])


@register("atan")
def _():
    fit("atan(x), relative", mp.atan, range(3, 18, 2), 0, 1, relative(mp.atan), "f", [(1, 1)])


@register("asin")
def _():
    fit("asin(x), relative", mp.asin, range(3, 14, 2), 0, "0.5", relative(mp.asin), "f", [(1, 1)])


@register("tanh")
def _():
    fit("tanh(x), relative", mp.tanh, range(3, 14, 2), 0, "0.625", relative(mp.tanh), "f", [(1, 1)])


@register("sinh")
def _():
    fit("sinh(x), relative", mp.sinh, range(3, 10, 2), 0, 1, relative(mp.sinh), "f", [(1, 1)])


@register("log_double")
def _():
    bound = (mp.sqrt(2) - 1) / (mp.sqrt(2) + 1)
    fit("2*atanh(s) = log((1+s)/(1-s)), relative", lambda s: 2 * mp.atanh(s), range(3, 14, 2), 0, bound,
        relative(mp.atanh), "d", [(1, 2)])


@register("exp2_double")
def _():
    fit("2^f", lambda x: mp.mpf(2) ** x, range(1, 8), -0.5, 0.5, one, "d", [(0, 1)])


def two_over_pi_table():
    """2^23 ((2/pi * 2^(k-23)) mod 4) for k = -13 .. 127 as high + low: high has at most 29 bits."""
    mp.mp.dps = 120
    high, low = [], []
    for k in range(-13, 128):
        t = 2 / mp.pi * mp.mpf(2) ** (k - 23)
        t = (t - 4 * mp.nint(t / 4)) * 2 ** 23
        exponent = mp.floor(mp.log(abs(t), 2))
        unit = mp.mpf(2) ** (exponent - 28)
        first = mp.nint(t / unit) * unit
        high.append(struct.unpack("<Q", struct.pack("<d", float(first)))[0])
        low.append(struct.unpack("<Q", struct.pack("<d", float(t - first)))[0])
        assert mp.mpf(float(first)) == first
    for row in (high, low):
        row.append(0x7ff8000000000000)  # for the exponent of infinity and NaN
    return high, low


@register("two_over_pi")
def _():
    for name, row in zip(("high", "low"), two_over_pi_table()):
        print(f"// two_over_pi_{name}")
        for i in range(0, len(row), 4):
            print("    " + " ".join(f"0x{v:016x}ull," for v in row[i:i + 4]))


if __name__ == "__main__":
    for wanted in sys.argv[1:] or FITS:
        FITS[wanted]()
