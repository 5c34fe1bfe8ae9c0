"""Plots of samples, chains, energies, densities and training: arrays in, matplotlib axes out.

Each function draws into ``ax`` or, without one, into axes of a new figure, which ``ax.figure.savefig(path)`` writes.
pyplot is not used, so no figure stays open.
"""

from adance.plot.contributions import contributions_of_columns
from adance.plot.curves import training_curves
from adance.plot.energies import energy_histogram
from adance.plot.plane import density
from adance.plot.posteriors import corner, coverage_curve, rank_histogram
from adance.plot.samples import chain_film, samples_grid, save_grid

__all__ = [
    "chain_film",
    "contributions_of_columns",
    "corner",
    "coverage_curve",
    "density",
    "energy_histogram",
    "rank_histogram",
    "samples_grid",
    "save_grid",
    "training_curves",
]
