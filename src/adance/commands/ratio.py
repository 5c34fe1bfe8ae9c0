"""``adance ratio``."""

import numpy as np
from numpy.typing import NDArray

from adance.commands.parser import make_parser
from adance.commands.tables import picture_beside, read_two_tables, write_picture, write_table
from adance.errors import InputError

PERMUTATIONS = 2000
LEAST_ROWS = 10


def run(argv: list[str]) -> None:
    """Measure how a table differs from an earlier one, and weight the rows of the earlier one."""
    parser = make_parser("ratio", "Measure how a table differs from an old one, and weight the old rows to match it.")
    parser.option("old", type=str, help="a .csv table; a label column is not used")
    parser.option("new", type=str, help="a .csv table with the same columns")
    parser.option(
        "--out", type=str, default="weights.csv", help="the .csv file of weights; its picture has the name .png"
    )
    parser.option("--seed", type=int, default=0, help="seed of everything random")
    args = parser.read(argv)
    from adance.plot.axes import COLORS, new_axes
    from adance.sklearn import DensityRatio

    picture = picture_beside(args.out, args.old, args.new)
    old, new, _ = read_two_tables(args.old, args.new)
    if min(len(old), len(new)) < LEAST_ROWS:
        raise InputError(f"tables of {len(old)} and {len(new)} rows are too small: at least {LEAST_ROWS} are needed")
    rng = np.random.default_rng(args.seed)
    x, y = np.concatenate([old, new]), np.repeat([0, 1], [len(old), len(new)])
    tested = np.concatenate(
        [rng.permutation(np.flatnonzero(y == label))[: (y == label).sum() // 2] for label in (0, 1)]
    )
    fitted = np.setdiff1d(np.arange(len(x)), tested)
    ratio = DensityRatio(random_state=args.seed).fit(x[fitted], y[fitted])
    for name, estimate in ratio.divergences(x[tested], y[tested]).items():
        print(f"{name.replace('_', ' ')}: {estimate.value:.4g} ± {estimate.error:.2g}")
    log_ratio, labels = ratio.log_ratio(x[tested]), y[tested]
    p_value = _drift(log_ratio, labels, rng)
    print(f"drift: p = {p_value:.2g} by {PERMUTATIONS} permutations of the rows that were left out of the fit")
    weights = ratio.weights(old)
    write_table(args.out, ["row", "weight"], list(enumerate(weights)))
    ax = new_axes()
    for name, color, rows in (("old", "far", log_ratio[labels == 0]), ("new", "accent", log_ratio[labels == 1])):
        ax.hist(rows, bins=40, density=True, histtype="step", color=COLORS[color], label=name)
    ax.set_xlabel("log-ratio new / old (nats)")
    ax.legend(frameon=False)
    write_picture(ax, picture)
    size = ratio.effective_sample_size(old)
    print(f"weights: {len(old)} rows in {args.out}, worth {size:.0f} rows; log-ratios in {picture}")


def _drift(log_ratio: NDArray[np.float64], labels: NDArray[np.int64], rng: np.random.Generator) -> float:
    """The share of permuted labels that separate the log-ratios at least as well as the real ones."""

    def gap(of: NDArray[np.int64]) -> float:
        return float(log_ratio[of == 1].mean() - log_ratio[of == 0].mean())

    real = gap(labels)
    return (1 + sum(gap(rng.permutation(labels)) >= real for _ in range(PERMUTATIONS))) / (1 + PERMUTATIONS)
