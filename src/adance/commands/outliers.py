"""``adance outliers``."""

import numpy as np

from adance.commands.parser import make_parser
from adance.commands.tables import picture_beside, read_two_tables, write_picture, write_table
from adance.errors import InputError

CALIBRATION = 0.2
"""Share of the training rows that p-values compare with; they are not trained on."""

EXPLAINED = 100
LEAST_ROWS = 10


def run(argv: list[str]) -> None:
    """Score the rows of a table by how unlikely they are among those of another."""
    parser = make_parser("outliers", "Find the rows of a table that are unlikely among the rows of another.")
    parser.option("train", type=str, help="a .csv table of normal rows; a label column is not used")
    parser.option("new", type=str, help="a .csv table of rows to score, with the same columns")
    parser.option(
        "--out", type=str, default="scores.csv", help="the .csv file of scores; its picture has the name .png"
    )
    parser.option("--contamination", type=float | None, default=None, help="share of outliers among the training rows")
    parser.option("--seed", type=int, default=0, help="seed of everything random")
    args = parser.read(argv)
    from adance.plot import contributions_of_columns
    from adance.sklearn import EnergyOutlierDetector

    picture = picture_beside(args.out, args.train, args.new)
    train, new, names = read_two_tables(args.train, args.new)
    if len(train) < LEAST_ROWS:
        raise InputError(f"{args.train} has {len(train)} rows, but at least {LEAST_ROWS} are needed")
    order = np.random.default_rng(args.seed).permutation(len(train))
    held = max(1, round(CALIBRATION * len(train)))
    contamination = "auto" if args.contamination is None else args.contamination
    detector = EnergyOutlierDetector(contamination=contamination, random_state=args.seed).fit(train[order[held:]])
    usual = np.sort(detector.score_samples(train[order[:held]]))
    scores = detector.score_samples(new)
    p_values = (1 + np.searchsorted(usual, scores, side="right")) / (1 + held)
    worst = scores.argsort(kind="stable")
    explanation = detector.explain(new[worst[:EXPLAINED]], random_state=args.seed)
    top = {
        row: " ".join(names[int(column[1:])] for column in columns)
        for row, columns in zip(worst, explanation.top(3), strict=False)
    }
    ranks = np.argsort(worst) + 1
    write_table(
        args.out,
        ["row", "score", "rank", "p_value", "top_columns"],
        [(i, scores[i], ranks[i], p_values[i], top.get(i, "")) for i in range(len(new))],
    )
    write_picture(contributions_of_columns(explanation.contributions[0], names), picture)
    print(f"scores: {len(new)} rows in {args.out}; least likely: row {worst[0]} ({top[worst[0]]}), in {picture}")
