"""What is run when: passes in turns with a reference, then what each configuration sends, needs and learns."""

WARM, REFERENCE, TIME, CHECK = "warm", "reference", "time", "check"


class Schedule:
    """Asked for one visit after the other, so that it can leave out what would come too late.

    plan: "order" (names, the most telling first), "reference" (a name), "baselines" (names of which only the losses
    are wanted), "expected_s" (name: seconds per step), "reference_every", "check_share" (what a check takes, in
    visits), "passes" and "budget_s" (None: all).
    """

    def __init__(self, plan):
        self.plan, self.kept, self.dropped = plan, [], []
        self.took, self.visits = {}, iter(self.all_visits())
        self.now = 0.0

    def next(self, now_s):
        """(kind, name, pass) or None; `now_s` since the start."""
        self.now = now_s
        return next(self.visits, None)

    def took_s(self, name, seconds):
        self.took.setdefault(name, seconds)

    def fails(self, name):
        if name in self.kept:
            self.kept.remove(name)

    def all_visits(self):
        plan = self.plan
        yield WARM, plan["reference"], 0
        yield from self.with_references(self.first_pass(), 1)
        for number in range(2, plan.get("passes", 2) + 1):
            yield from self.with_references(self.kept[::-1] if number % 2 == 0 else self.kept[:], number)
        for name in [*plan["baselines"], *self.kept]:
            yield CHECK, name, 0

    def with_references(self, names, number):
        count = 0
        for name in names:
            if count % self.plan["reference_every"] == 0:
                yield REFERENCE, self.plan["reference"], number
            count += 1
            yield TIME, name, number
        yield REFERENCE, self.plan["reference"], number

    def first_pass(self):
        for place, name in enumerate(self.plan["order"]):
            if self.is_late(name):
                self.dropped = self.plan["order"][place:]
                return
            self.kept.append(name)
            yield name

    def is_late(self, name):
        """Whether this one and what those before it still need would end after the budget."""
        if self.plan["budget_s"] is None or len(self.kept) < 2:
            return False
        done = [each for each in self.kept if each in self.took]
        expected = self.plan["expected_s"]
        pace = sum(self.took[each] for each in done) / sum(expected[each] for each in done)
        references = 1 / self.plan["reference_every"]
        more = (self.plan.get("passes", 2) - 1) * (1 + references) + self.plan["check_share"]
        rest = sum(self.took[each] for each in done) * more + pace * expected[name] * (1 + references + more)
        return self.now + rest > self.plan["budget_s"]
