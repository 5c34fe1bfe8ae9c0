"""A restricted Boltzmann machine compared with scikit-learn's BernoulliRBM: exact log-likelihood and time.

    python benchmarks/rbm.py [--seeds 0,1,2]

64 visible and 16 hidden units in {0, 1}; scikit-learn's 8×8 digits, a pixel 1 where it is 8 or more of 16; 1,400 to
train on and 397 held out. Both train by persistent contrastive divergence with one Gibbs sweep a step, at the same
learning rate, batch size and number of epochs, in float32 on one thread. The mean log-likelihoods, in nats, are exact:
log Z is a sum over all 2¹⁶ hidden states, in float64, by the same code for both. "plain" is
rbm_learner.py as BernoulliRBM does it, but for a new order of the data in each epoch: biases from 0, and the parameters
after the last step instead of their mean over the last tenth of the epochs.
"""

import argparse
import statistics
import time
import warnings
from collections.abc import Callable

import torch
from rbm_learner import train_rbm
from sklearn.neural_network import BernoulliRBM
from threadpoolctl import threadpool_limits
from torch import Tensor

import adance
from adance.energies import RBM, fit_visible_bias

SETTINGS = [(0.1, 10, 10), (0.1, 10, 50), (0.05, 20, 50), (0.01, 10, 50), (0.1, 100, 50)]
"""Learning rate, batch size and epochs; the first are scikit-learn's defaults."""

Fit = Callable[[Tensor, float, int, int, int], RBM]


def digits() -> tuple[Tensor, Tensor]:
    """Binary digits ``(1400, 64)`` and ``(397, 64)``, float32."""
    data = adance.load_data("digits")
    return tuple((x.flatten(1) >= 8).float() for x in (data.train, data.test))


def fit_sklearn(x: Tensor, rate: float, batch: int, epochs: int, seed: int) -> RBM:
    made = BernoulliRBM(16, learning_rate=rate, batch_size=batch, n_iter=epochs, random_state=seed).fit(x.numpy())
    rbm = RBM((64,), 16)
    with torch.no_grad():
        rbm.weight.copy_(torch.from_numpy(made.components_.T))
        rbm.visible_bias.copy_(torch.from_numpy(made.intercept_visible_))
        rbm.hidden_bias.copy_(torch.from_numpy(made.intercept_hidden_))
    return rbm


def fit_plain(x: Tensor, rate: float, batch: int, epochs: int, seed: int) -> RBM:
    generator = torch.Generator().manual_seed(seed)
    rbm = RBM((64,), 16, generator=generator)
    train_rbm(rbm, x, epochs=epochs, batch_size=batch, learning_rate=rate, average=0, generator=generator)
    return rbm


def fit_adance(x: Tensor, rate: float, batch: int, epochs: int, seed: int) -> RBM:
    generator = torch.Generator().manual_seed(seed)
    rbm = RBM((64,), 16, generator=generator)
    fit_visible_bias(rbm, x)
    train_rbm(rbm, x, epochs=epochs, batch_size=batch, learning_rate=rate, generator=generator)
    return rbm


@torch.no_grad()
def likelihoods(rbm: RBM, *sets: Tensor) -> list[float]:
    """Exact mean log-likelihoods, in nats."""
    rbm = rbm.double()
    log_z = rbm.log_partition()
    return [float(-rbm(x.double()).mean() - log_z) for x in sets]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", default="0,1,2", help="seeds, by commas")
    seeds = [int(seed) for seed in parser.parse_args().seeds.split(",")]
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore", category=FutureWarning)
    train, test = digits()
    fits: dict[str, Fit] = {"scikit-learn": fit_sklearn, "adance, plain": fit_plain, "adance": fit_adance}
    for fit in fits.values():
        fit(train, 0.1, 10, 1, 0)  # warm up
    print("| learning rate, batch, epochs | method | train, each seed | test, each seed | seconds (median) |")
    print("|---|---|---|---|---|")
    for setting in SETTINGS:
        scores: dict[str, list[list[float]]] = {name: [] for name in fits}
        seconds: dict[str, list[float]] = {name: [] for name in fits}
        for seed in seeds:
            for name, fit in fits.items():
                began = time.perf_counter()
                rbm = fit(train, *setting, seed)
                seconds[name].append(time.perf_counter() - began)
                scores[name].append(likelihoods(rbm, train, test))
        for name in fits:
            columns = [" ".join(f"{score[i]:.2f}" for score in scores[name]) for i in (0, 1)]
            label = ", ".join(f"{number:g}" for number in setting)
            print(f"| {label} | {name} | {' | '.join(columns)} | {statistics.median(seconds[name]):.2f} |", flush=True)


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
