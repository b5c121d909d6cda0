# SPDX-License-Identifier: ISC
"""Lines over time as SVG."""

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 720, 300, 56, 120, 36, 40
COLORS = ["#1b6ca8", "#c2571a", "#2e7d32", "#8e3a80", "#555555"]
STEPS = [1, 2, 5, 10, 20, 25, 50, 100, 200, 500, 1000, 2000, 5000]


def step_of(top, n):
    return next((s for s in STEPS if top / s <= n), STEPS[-1])


def plot(title, unit, lines, top=None):
    """lines: {name: [(seconds, value)]}; top: the end of the scale."""
    end = max(x for points in lines.values() for x, _ in points)
    top = top or 1.15 * max(y for points in lines.values() for _, y in points)
    wide, high = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM

    def at(x, y):
        return "%.1f,%.1f" % (LEFT + wide * x / end, TOP + high * (1 - y / top))

    out = [
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif"'
        ' font-size="12" fill="#333">' % (WIDTH, HEIGHT),
        '<rect width="%d" height="%d" fill="#fff"/>' % (WIDTH, HEIGHT),
        '<text x="%d" y="20" font-size="14">%s (%s)</text>' % (LEFT, title, unit)]
    value = 0
    while value <= top:
        y = TOP + high * (1 - value / top)
        out.append('<path d="M%d %.1fH%d" stroke="#ddd"/><text x="%d" y="%.1f" text-anchor="end">%d</text>' % (
            LEFT, y, WIDTH - RIGHT, LEFT - 6, y + 4, value))
        value += step_of(top, 5)
    second = 0
    while second <= end:
        out.append('<text x="%.1f" y="%d" text-anchor="middle">%d s</text>' % (
            LEFT + wide * second / end, HEIGHT - BOTTOM + 18, second))
        second += step_of(end, 10)
    for i, (name, points) in enumerate(lines.items()):
        color = COLORS[i % len(COLORS)]
        out.append('<polyline fill="none" stroke="%s" stroke-width="1.5" points="%s"/>' % (
            color, " ".join(at(x, y) for x, y in points)))
        out.append('<path d="M%d %dh18" stroke="%s" stroke-width="3"/><text x="%d" y="%d">%s</text>' % (
            WIDTH - RIGHT + 12, TOP + 10 + 20 * i, color, WIDTH - RIGHT + 36, TOP + 14 + 20 * i, name))
    return "\n".join(out) + "\n</svg>\n"
