"""The LASSO of a unit row x on few unit rows E, ``min_c ||c||_1 + lam/2 ||x - c E||^2``, and its bounds.

Inner products are all it needs: the Gram matrix ``E E'`` and the products ``E x'``. Arrays are as large
as the set of rows may become; the first ``size`` of them count. The solver walks through supports: rows
that fit the residual best come in, by one step of coordinate descent each, and Newton steps on the
support, cut where a coefficient would change its sign, settle all of them. Coherent rows, on which
coordinate descent alone creeps, are no harder than others.
"""

from __future__ import annotations

import numpy as np

from smrmf._numba import kernel

# A row counts as dependent on others in the support if its squared distance from their span is less. Its
# pivot is raised to this: a smaller divisor would enlarge rounding beyond use.
LEAST_PIVOT = 1e-6
# Along a dependence the cost has almost no curvature: a step is at most this many Newton steps long.
LONGEST_STEP = 1e8
# In units of the fidelity, costs closer than this cannot be told apart.
COST_ROUNDING = 2e-16
# Rounds for every row, far more than are ever needed: progress along a dependence may be slow.
MOST_ROUNDS = 20
TINY = 1e-200


@kernel
def work_space(size):
    """Make what :func:`solve_lasso` works in: products, a direction, rotations, support and factor."""
    return (
        np.empty(size),
        np.empty(size),
        np.empty(size),
        np.empty((2, size)),
        np.empty(size, np.intp),
        np.empty((size, size)),
    )


@kernel
def residual_products(gram, products, size, c, q):
    """Compute ``q = E (x - c E)'``, the products of the rows with what they leave of x."""
    for i in range(size):
        q[i] = products[i]
    for i in range(size):
        share = c[i]
        # Most coefficients are zero, and the Gram matrix is symmetric: contiguous rows stand for columns.
        if share != 0:
            for j in range(size):
                q[j] -= share * gram[i, j]


@kernel
def lasso_bounds(products, size, fidelity, c, q):
    """Bound the least cost: from above by the cost of c, from below by its residual.

    Shrunk until ``|e u'| <= 1`` for all rows e, the residual becomes a feasible u of the dual problem
    ``max x u' - ||u||^2 / (2 lam)``. The row x itself is feasible too, as all rows have length one, and gives
    the bound ``1 - 1 / (2 lam)``, the cost of a row that is among E.
    """
    length = 0.0
    explained = 0.0
    left = 0.0
    largest = TINY
    for i in range(size):
        length += abs(c[i])
        explained += products[i] * c[i]
        left += q[i] * c[i]
        largest = max(largest, abs(q[i]))
    # With r = x - c E and |x| = 1: x r' = 1 - explained, and |r|^2 = x r' - c q'. Both cancel where x is well
    # explained, so they are exact to about eps, and costs to fidelity times that (COST_ROUNDING).
    along = max(1 - explained, 0.0)
    squared = max(1 - explained - left, 0.0)
    scale = 1 / (fidelity * largest)
    # u = scale * fidelity * r. The dual value is largest at along / squared, if that is feasible.
    if scale * squared > along:
        scale = along / squared
    lower = scale * fidelity * (along - 0.5 * scale * squared)
    return length + 0.5 * fidelity * squared, max(lower, 1 - 0.5 / fidelity)


@kernel
def add_to_support(
    gram,  # IN
    size,  # IN
    threshold,  # IN
    wanted,  # IN
    c,  # IN, OUT
    q,  # IN, OUT
    support,  # IN, OUT
    count,  # IN
):
    """Let in the rows that fit the residual best, one after the other; return the size of the support."""
    for _ in range(wanted):
        best = -1
        largest = threshold
        for i in range(size):
            if c[i] == 0 and abs(q[i]) > largest:
                largest = abs(q[i])
                best = i
        if best < 0:
            break
        # The exact minimiser in this coefficient alone, as the row has length one. A row of which |q| is at
        # most the threshold has the optimal coefficient 0.
        change = q[best] - threshold * np.sign(q[best])
        for j in range(size):
            q[j] -= change * gram[best, j]
        c[best] = change
        support[count] = best
        count += 1
    return count


@kernel
def factorise(gram, support, known, count, factor):
    """Extend the Cholesky factor of the Gram matrix of a support from ``known`` rows to ``count``."""
    for r in range(known, count):
        i = support[r]
        row = factor[r]
        for e in range(r):
            value = gram[i, support[e]]
            other = factor[e]
            for f in range(e):
                value -= row[f] * other[f]
            row[e] = value / other[e]
        pivot = gram[i, i]
        for e in range(r):
            pivot -= row[e] * row[e]
        # The pivot is the squared distance of the row from the span of those before it.
        row[r] = np.sqrt(max(pivot, LEAST_PIVOT))


@kernel
def drop_from_support(support, place, count, factor, rotations):
    """Take one row out of a support; rotations of columns keep its Cholesky factor triangular."""
    cosine, sine = rotations
    # Without row "place", each row below has one entry beyond the diagonal. A rotation of two columns moves
    # it into the diagonal and keeps L L': O(count^2), where a new factor takes O(count^3).
    for r in range(place, count - 1):
        support[r] = support[r + 1]
        row = factor[r]
        below = factor[r + 1]
        for e in range(place):
            row[e] = below[e]
        # The rotations found by the rows above; "carried" is the turned entry of the next column.
        carried = below[place]
        for e in range(place, r):
            row[e] = cosine[e] * carried + sine[e] * below[e + 1]
            carried = cosine[e] * below[e + 1] - sine[e] * carried
        row[r] = np.sqrt(carried * carried + below[r + 1] * below[r + 1])
        cosine[r] = carried / row[r]
        sine[r] = below[r + 1] / row[r]


@kernel
def newton_direction(
    support,  # IN
    count,  # IN
    factor,  # IN
    threshold,  # IN
    c,  # IN
    q,  # IN
    direction,  # OUT
):
    """Find the direction from c to the least cost on the support, with the signs as they are.

    It solves ``gram_SS direction = q_S - sign(c_S) / lam``, the condition that the gradient vanishes.
    """
    # Substitution with L, then with L'. The second goes by rows of L, which are contiguous, instead of by
    # columns: each finished entry is taken out of all that are still open.
    for e in range(count):
        i = support[e]
        value = q[i] - threshold * np.sign(c[i])
        row = factor[e]
        for f in range(e):
            value -= row[f] * direction[f]
        direction[e] = value / row[e]
    for e in range(count - 1, -1, -1):
        row = factor[e]
        share = direction[e] / row[e]
        direction[e] = share
        for f in range(e):
            direction[f] -= share * row[f]


@kernel
def line_search(
    gram,  # IN
    size,  # IN
    threshold,  # IN
    support,  # IN
    count,  # IN
    direction,  # IN
    c,  # IN, OUT
    q,  # IN, OUT
    shift,  # OUT
):
    """Go along a direction to where the cost is least, or until a coefficient vanishes."""
    # shift = direction E E', how q changes: all later sums need no product with the rows themselves.
    for j in range(size):
        shift[j] = 0.0
    for e in range(count):
        i = support[e]
        share = direction[e]
        for j in range(size):
            shift[j] += share * gram[i, j]
    slope = 0.0
    curvature = 0.0
    for e in range(count):
        i = support[e]
        slope += direction[e] * (q[i] - threshold * np.sign(c[i]))
        curvature += direction[e] * shift[i]
    slope = max(slope, TINY)  # rounding
    # One, but for raised pivots, which make the direction too short.
    step = slope / max(curvature, slope / LONGEST_STEP)
    vanishing = -1
    # Beyond a change of sign the cost is another quadratic. Steps only get shorter here, so the last
    # coefficient found is the first to vanish.
    for e in range(count):
        here = c[support[e]]
        if here * (here + step * direction[e]) <= 0:
            step = -here / direction[e]
            vanishing = e
    for e in range(count):
        i = support[e]
        there = c[i] + step * direction[e]
        # Exactly zero: rounding could leave a tiny coefficient of the wrong sign.
        c[i] = 0.0 if e == vanishing or c[i] * there <= 0 else there
    for j in range(size):
        q[j] -= step * shift[j]


@kernel
def minimize_on_support(
    gram,  # IN
    size,  # IN
    threshold,  # IN
    c,  # IN, OUT
    count,  # IN
    known,  # IN
    work,  # IN, OUT
):
    """Minimise the cost on a support, without what vanishes; return the size of the support left."""
    q, shift, direction, rotations, support, factor = work
    before = -1
    # Raised pivots aside, a full step ends at the minimum on the support; one that is cut short loses a row
    # and is followed by another.
    while count != before and count > 0:
        before = count
        factorise(gram, support, known, count, factor)
        newton_direction(support, count, factor, threshold, c, q, direction)
        line_search(gram, size, threshold, support, count, direction, c, q, shift)
        # From the end: what is dropped moves only places that have been visited.
        for e in range(before - 1, -1, -1):
            if c[support[e]] == 0:
                drop_from_support(support, e, count, factor, rotations)
                count -= 1
        known = count
    return count


@kernel
def solve_lasso(
    gram,  # IN
    products,  # IN
    size,  # IN
    fidelity,  # IN
    tol,  # IN
    bar,  # IN
    c,  # IN, OUT
    work,  # IN, OUT
):
    """Improve c until its cost is within ``tol`` of the least, relatively, or below ``bar``.

    ``c`` may start anywhere. Return the upper and the lower bound of the least cost.
    """
    q, _, _, _, support, _ = work
    threshold = 1 / fidelity
    residual_products(gram, products, size, c, q)
    count = 0
    for i in range(size):
        if c[i] != 0:
            support[count] = i
            count += 1
    known = 0
    wanted = 1
    last = np.inf
    upper, lower = lasso_bounds(products, size, fidelity, c, q)
    for _ in range(MOST_ROUNDS * (size + 1)):
        if upper < bar or upper - lower <= tol * upper or last - upper <= COST_ROUNDING * fidelity:
            break
        last = upper
        entered = add_to_support(gram, size, threshold, wanted, c, q, support, count)
        count = minimize_on_support(gram, size, threshold, c, entered, known, work)
        known = count
        if count == entered:  # rows that came together have not pushed each other out
            wanted = min(2 * wanted, size)
        upper, lower = lasso_bounds(products, size, fidelity, c, q)
    return upper, lower


@kernel
def find_costliest(
    gram,  # IN
    products,  # IN
    size,  # IN
    fidelity,  # IN
    tol,  # IN
    bar,  # IN
    rows,  # IN
    coefficients,  # IN, OUT
    upper,  # IN, OUT
):
    """Find the largest least cost among points, given by falling upper bounds of their costs.

    Every point that may still reach ``bar``, the largest cost so far, is solved; its bound and its
    coefficients are updated. Return the new bar and how many points were solved.
    """
    work = work_space(size)
    solved = 0
    for j in rows:
        reach = bar * (1 - tol)  # costs this close are ties, which the caller settles
        # Bounds fall along the rows: none of the rest can reach it either.
        if upper[j] < reach:
            break
        upper[j], _ = solve_lasso(gram, products[j], size, fidelity, tol, reach, coefficients[j], work)
        bar = max(bar, upper[j])
        solved += 1
    return bar, solved


@kernel
def solve_rows(gram, products, fidelity, tol, coefficients):
    """Solve the LASSO of every row of products, from where its coefficients are."""
    size = gram.shape[0]
    work = work_space(size)
    for j in range(products.shape[0]):
        solve_lasso(gram, products[j], size, fidelity, tol, -np.inf, coefficients[j], work)
