"""Our step times beside the real ones, on logarithmic axes: PNG by matplotlib, else an SVG."""
import html
import math

COLOURS = ("#1b6ca8", "#d1495b", "#3a7d44", "#8e5ea2")  # by stage
SIZE, LEFT, TOP, RIGHT, BOTTOM = 560, 70, 40, 110, 60


def points_of(rows):
    """(real ms, our ms, stage, name)"""
    return [(row.real_s * 1e3, row.configuration.step_s * 1e3, row.configuration.stage, row.configuration.name)
            for row in rows]


def limits(points):
    values = [value for point in points for value in point[:2]]
    return min(values) / 1.15, max(values) * 1.15


def ticks(low, high):
    """1, 2 and 5 times powers of ten between the two."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    return [step * 10.0 ** decade for decade in decades for step in (1, 2, 5) if low <= step * 10.0 ** decade <= high]


def svg(points, title):
    low, high = limits(points)

    def along(value):
        return math.log(value / low) / math.log(high / low) * SIZE

    def x(value):
        return LEFT + along(value)

    def y(value):
        return TOP + SIZE - along(value)

    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + SIZE + RIGHT}" height="{TOP + SIZE + BOTTOM}" '
             'font-family="sans-serif" font-size="12"><rect width="100%" height="100%" fill="white"/>',
             f'<text x="{LEFT}" y="24" font-size="14">{html.escape(title)}</text>',
             f'<rect x="{LEFT}" y="{TOP}" width="{SIZE}" height="{SIZE}" fill="none" stroke="#444"/>',
             f'<line x1="{x(low):.1f}" y1="{y(low):.1f}" x2="{x(high):.1f}" y2="{y(high):.1f}" stroke="#999" '
             'stroke-dasharray="4"/>']
    for tick in ticks(low, high):
        parts.append(f'<text x="{x(tick):.1f}" y="{TOP + SIZE + 18}" text-anchor="middle">{tick:g}</text>'
                     f'<text x="{LEFT - 6}" y="{y(tick) + 4:.1f}" text-anchor="end">{tick:g}</text>')
    parts.append(f'<text x="{LEFT + SIZE / 2}" y="{TOP + SIZE + 44}" text-anchor="middle">DeepSpeed, ms per step</text>'
                 f'<text transform="translate(20 {TOP + SIZE / 2}) rotate(-90)" text-anchor="middle">'
                 'dstune-mpi, ms per step</text>')
    for real, ours, stage, name in points:
        parts.append(f'<circle cx="{x(real):.1f}" cy="{y(ours):.1f}" r="4" fill="{COLOURS[stage]}" fill-opacity="0.7">'
                     f'<title>{html.escape(name)}</title></circle>')
    for stage in sorted({point[2] for point in points}):
        height = TOP + 14 + 20 * stage
        parts.append(f'<circle cx="{LEFT + SIZE + 18}" cy="{height}" r="4" fill="{COLOURS[stage]}"/>'
                     f'<text x="{LEFT + SIZE + 28}" y="{height + 4}">stage {stage}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def png(path, points, title):
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot
    figure, axes = pyplot.subplots(figsize=(7, 6.5))
    for stage in sorted({point[2] for point in points}):
        mine = [point for point in points if point[2] == stage]
        axes.scatter([point[0] for point in mine], [point[1] for point in mine], label=f"stage {stage}",
                     color=COLOURS[stage], alpha=0.7)
    axes.plot(limits(points), limits(points), color="#999", linestyle="--")
    axes.set(xscale="log", yscale="log", xlim=limits(points), ylim=limits(points), title=title,
             xlabel="DeepSpeed, ms per step", ylabel="dstune-mpi, ms per step")
    axes.legend()
    figure.savefig(path, dpi=120)
    pyplot.close(figure)


def write(folder, rows, title):
    """The file's path."""
    points = points_of(rows)
    try:
        png(folder / "verdict.png", points, title)
        return folder / "verdict.png"
    except ImportError:
        (folder / "verdict.svg").write_text(svg(points, title), encoding="utf-8")
        return folder / "verdict.svg"
