"""Which of the measured configurations are worth a run in DeepSpeed, the most telling first."""


def distinct(configurations):
    """Without those whose names came before."""
    return list({each.name: each for each in configurations}.values())


def by_batch(configurations, taken):
    """In turns over the batches: of each the best whose stage has the fewest there so far."""
    groups = {}
    for each in configurations:
        groups.setdefault(each.batch, []).append(each)
    seen = {}
    for each in taken:
        seen[each.batch, each.stage] = seen.get((each.batch, each.stage), 0) + 1
    while groups:
        for batch in list(groups):
            next_one = min(groups[batch], key=lambda each: seen.get((batch, each.stage), 0))
            seen[batch, next_one.stage] = seen.get((batch, next_one.stage), 0) + 1
            yield next_one
            groups[batch].remove(next_one)
            if not groups[batch]:
                del groups[batch]


def in_turns(*lists):
    lists = [list(each) for each in lists]
    for place in range(max(map(len, lists))):
        for each in lists:
            if place < len(each):
                yield each[place]


def choose(configurations, pick, count, metric):
    """At most `count`: the pick, the best of each stage and type, then the close ones and the batches in turns; a
    sixth of them, at the end, are far ones. The order is by what a shorter list would keep."""
    ordered = sorted(configurations, key=lambda each: (each.cost(each.step_s, metric), each.name))
    picked = next(each for each in ordered if each.name == pick)
    best = distinct([next(each for each in ordered if (each.stage, each.precision) == kind)
                     for kind in dict.fromkeys((each.stage, each.precision) for each in ordered)])
    first = distinct([picked, *sorted(best, key=lambda each: each.stage)])[:count]
    rest = [each for each in ordered if each not in first]
    room = count - len(first)
    far = far_ones(rest, min(room, count // 6))
    near = [each for each in rest if each not in far]
    middle = distinct(in_turns(near, by_batch(near, first)))[:room - len(far)]
    return [*first, *middle, *far]


def far_ones(ordered, count):
    """Evenly from the slower half, the slowest first."""
    half = ordered[len(ordered) // 2:]
    if count <= 0 or not half:
        return []
    count = min(count, len(half))
    return [half[len(half) - 1 - place * len(half) // count] for place in range(count)]
