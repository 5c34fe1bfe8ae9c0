"""Has the chain converged? Effective sample sizes and split R̂, by arviz (an extra), and chains as its data set."""

import importlib
from typing import Any

import torch
from torch import Tensor

from adance.energies.energy import Energy, reading
from adance.errors import InputError
from adance.samplers.chains import Chains
from adance.samplers.moves import energies


def to_arviz(chains: Chains | Tensor, energy: Energy | None = None, thin: int = 1) -> Any:
    """Chains as an arviz ``InferenceData``: variable ``x`` ``(chain, draw, *event)``.

    Args:
        chains: What :func:`run_chains` returned with ``record=True``, or positions ``(draws, B, *event)``.
        energy: With it, ``sample_stats`` has the energy of every draw.
        thin: Every ``thin``-th draw only.

    Raises:
        InputError: arviz is not installed, or the chains were not recorded.
    """
    az, positions = _arviz(), _positions(chains)[::thin]
    stats = None
    if energy is not None:
        with reading(energy):
            values = torch.stack([energies(energy, x) for x in positions])
        stats = {"energy": values.T.cpu().numpy()}
    return az.from_dict(posterior={"x": positions.transpose(0, 1).cpu().numpy()}, sample_stats=stats)


def effective_sample_size(chains: Chains | Tensor, method: str = "bulk") -> Tensor:
    """How many independent draws all chains together are worth, for each coordinate ``(*event)``.

    Args:
        chains: What :func:`run_chains` returned with ``record=True``, or positions ``(draws, B, *event)``.
        method: One of arviz's, such as ``bulk``, ``tail`` or ``mean``.

    Raises:
        InputError: arviz is not installed, or the chains were not recorded.
    """
    return torch.as_tensor(_arviz().ess(to_arviz(chains), method=method)["x"].values)


def split_rhat(chains: Chains | Tensor) -> Tensor:
    """Split R̂ of each coordinate ``(*event)``: well above 1 (say 1.01) the chains have not converged.

    Args:
        chains: What :func:`run_chains` returned with ``record=True``, or positions ``(draws, B, *event)``.

    Raises:
        InputError: arviz is not installed, or the chains were not recorded.
    """
    return torch.as_tensor(_arviz().rhat(to_arviz(chains), method="split")["x"].values)


def summary(chains: Chains) -> dict[str, float]:
    """A run's diagnostics, the worst coordinate's where there is one for each.

    The means are over all chains and the second half of the steps.

    Returns:
        ``acceptance``, ``energy``, ``gradient_norm`` (NaN for kernels without gradients), ``finite`` (the share of
        chains that stayed finite), and of recorded chains ``effective_sample_size`` and ``split_rhat``.

    Raises:
        InputError: The chains were recorded and arviz is not installed.
    """
    found = {
        name: float(values[len(values) // 2 :].nanmean())
        for name in ("acceptance", "energy", "gradient_norm")
        for values in [getattr(chains, name)]
    }
    found["finite"] = float(chains.finite.float().mean())
    if chains.positions is not None:
        found["effective_sample_size"] = float(effective_sample_size(chains).min())
        found["split_rhat"] = float(split_rhat(chains).max())
    return found


def _positions(chains: Chains | Tensor) -> Tensor:
    positions = chains.positions if isinstance(chains, Chains) else chains
    if positions is None:
        raise InputError("these chains were not recorded; run_chains(..., record=True) keeps their positions")
    if len(positions) < 4:
        raise InputError(f"diagnostics need at least 4 recorded positions a chain, got {len(positions)}")
    return positions


def _arviz() -> Any:
    try:
        return importlib.import_module("arviz")
    except ImportError:
        raise InputError("these diagnostics need arviz: pip install adance[diagnostics]") from None
