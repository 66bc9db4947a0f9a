"""A whole fit of a mixture on a million rows, in units of one least squares fit of the same rows.

Least squares means the normal equations with every thread that BLAS has. The answer is checked:
speed that loses a component is no speed.
"""

import statistics

from benchmarks.data import MIXED_NOISE, MIXED_OUTLIERS, SHARES, Mixed, mixed_models
from benchmarks.speed.answer import SLACK, Answer, check, least_squares, told_fits
from benchmarks.speed.race import Contestant, Seconds, duration, medians, race, stopwatch
from benchmarks.speed.table import Comparison, Row, Target, grid
from regimix import MixedLinearRegression

ROWS, QUICK_ROWS = 1_000_000, 30_000
COLUMNS, QUICK_COLUMNS = 50, 5
BASELINE = "least squares"
GIVEN, AUTO = "m given", 'n_components="auto"'
TARGETS = {GIVEN: Target(8, at_least=False), AUTO: Target(12, at_least=False)}
REST = "rest"  # the data door, standard errors and whatever else is in no stage

Stages = dict[str, list[dict[str, float]]]


def run(repeats: int, quick: bool) -> Comparison:
    rows, columns = (QUICK_ROWS, QUICK_COLUMNS) if quick else (ROWS, COLUMNS)
    sample = mixed_models(rows, columns, seed=0)
    told = told_fits(sample)
    answers: dict[str, Answer] = {}
    stages: Stages = {GIVEN: [], AUTO: []}

    def contestant(name: str, n_components: int | str) -> Contestant:
        def fit(number: int) -> float:
            model = MixedLinearRegression(n_components, random_state=number)
            seconds = stopwatch(lambda: model.fit(sample.X, sample.y))
            answers[name] = worse(answers.get(name), check(model, sample, told))
            if number > 0:
                stages[name].append(by_stage(model.mixture_.timings, seconds))
            return seconds

        return fit

    seconds = race(
        {
            BASELINE: lambda _: stopwatch(lambda: least_squares(sample.X, sample.y)),
            GIVEN: contestant(GIVEN, len(SHARES)),
            AUTO: contestant(AUTO, "auto"),
        },
        repeats,
    )
    unit = medians(seconds)[BASELINE]
    shares = {name: median_stages(found, unit) for name, found in stages.items()}
    raw = {
        "seconds": seconds,
        "stages": stages,
        "stages_in_fits": shares,
        "targets": {name: target.bound for name, target in TARGETS.items()},
        "size": f"{rows:,} × {columns}",
    }
    settings = {"shares": SHARES, "noise": MIXED_NOISE, "outliers": MIXED_OUTLIERS}
    return Comparison(table(sample, seconds, answers), remarks(shares), raw, settings)


def worse(before: Answer | None, now: Answer) -> Answer:
    """Keep the worst answer of all rounds, a fault before an error."""
    if before is None:
        return now
    return max(before, now, key=lambda answer: (bool(answer.fault), answer.error))


def by_stage(timings: dict[str, float], seconds: float) -> dict[str, float]:
    """Add what is in no stage."""
    return {**timings, REST: max(0.0, seconds - sum(timings.values()))}


def median_stages(found: list[dict[str, float]], unit: float) -> dict[str, float]:
    """Take the median of each stage over the rounds, in units of ``unit`` seconds."""
    names = list(dict.fromkeys(name for stages in found for name in stages))
    return {
        name: statistics.median(stages.get(name, 0.0) for stages in found) / unit for name in names
    }


def table(sample: Mixed, seconds: Seconds, answers: dict[str, Answer]) -> list[Row]:
    median = medians(seconds)
    size = f"{len(sample.y):,} × {sample.X.shape[1]}, m = {len(SHARES)}, 10 % outliers"
    rows = []
    for name, target in TARGETS.items():
        answer = answers[name]
        rows.append(
            Row(
                f"mixture, {size}, {name}: cost",
                duration(median[name]),
                "one least squares fit",
                duration(median[BASELINE]),
                median[name] / median[BASELINE],
                target,
                fault=answer.fault,
            )
        )
        rows.append(
            Row(
                "its worst error of a component, worst round",
                f"{answer.error:.3g}",
                "least squares told the labels",
                f"{answer.told_error:.3g}",
                answer.ratio,
                Target(SLACK, at_least=False),
            )
        )
    return rows


def remarks(shares: dict[str, dict[str, float]]) -> list[str]:
    stages = list(dict.fromkeys(stage for found in shares.values() for stage in found))
    lines = [
        [stage, *(f"{found.get(stage, 0.0):.2f}" for found in shares.values())] for stage in stages
    ]
    total = ["together", *(f"{sum(found.values()):.2f}" for found in shares.values())]
    what = f'Least squares fits that each stage costs, medians ("{REST}": what is in no stage):'
    return [what, grid(["stage", *shares], [*lines, total])]
