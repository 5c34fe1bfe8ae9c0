"""The settings of the training loop."""

from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal

from adance.errors import InputError
from adance.numbers import is_whole

WHOLE = (
    "steps",
    "batch_size",
    "decay_after",
    "warmup",
    "seed",
    "log_every",
    "sample_every",
    "checkpoint_every",
    "evaluate_every",
    "evaluate_samples",
    "patience",
)
REAL = ("lr", "ema", "data_noise", "energy_limit")

Compile = Literal["auto", "on", "off"] | bool
"""Whether to compile chains; YAML reads a bare ``on`` or ``off`` as a boolean."""

COMPILE = ("auto", "on", "off", True, False)
CHAIN_DTYPES = ("auto", "float32", "bfloat16")


@dataclass(frozen=True)
class Settings:
    """Settings of the training loop.

    Attributes:
        steps: Total number of optimizer steps.
        batch_size: Rows per batch, in each process.
        lr: Learning rate of Adam.
        adversary_lr: Learning rate of Adam for a noise that is trained against the model; by default ``lr``.
        betas: Decay rates of Adam's two moments. The default of the second is short, since the scale of
            gradients changes from snapshot to snapshot (docs/long-intervals.md). The thesis uses 0.999.
        schedule: Schedule of the learning rate. ``inverse``: constant, then proportional to ``decay_after/step``, which
            does not depend on ``steps``, so that a run can be extended; ``constant``; ``linear`` or ``cosine``:
            constant for the first half of ``steps``, then falling to 0.02 times ``lr``.
        decay_after: The step at which ``inverse`` starts to fall.
        warmup: Steps over which the learning rate rises from 0.
        grad_clip: Bound on the norm of the gradient of the energy's weights; none by default. A learned log Z and an
            adversary are not clipped.
        ema: Decay of the moving average of the weights, which is used for sampling; 0 for none.
        data_noise: Standard deviation of Gaussian noise added to data, in model units.
        dequantize: Add uniform noise of one quantization level to images.
        flip: Mirror each image left to right with probability ½.
        energy_limit: Training counts as diverged when the mean energies of data and noise differ by more than this, or
            the loss or the mean energy of data is more than this many times as large as at the first step.
        compile: Compile chains of kernels that support it (see docs/performance.md): ``on``, ``off``, or ``auto`` (only
            if that saves more than a minute in total).
        chain_dtype: Type of matrix products in chains, and in the gradients of the library's convolutions if the noise
            comes from chains: ``float32``, ``bfloat16``, or ``auto``, which is bfloat16 for compiled, unadjusted chains
            of images on devices where it is faster. The ratio is always float32.
        seed: Seed of everything random.
        log_every: Steps between lines of metrics.jsonl.
        sample_every: Steps between pictures of samples; 0 for only one at the end.
        checkpoint_every: Steps between checkpoints.
        evaluate_every: Steps between measurements of the distance of fresh samples from held-out data; 0 for none. A
            checkpoint is written at each, and ``--step best`` opens the best one.
        evaluate_samples: Samples drawn for each measurement.
        patience: Stop training after this many measurements in a row without improvement; 0 for never.
    """

    steps: int = 8000
    batch_size: int = 128
    lr: float = 1e-3
    betas: tuple[float, float] = (0.0, 0.99)
    schedule: Literal["inverse", "constant", "linear", "cosine"] = "inverse"
    decay_after: int = 2000
    warmup: int = 0
    grad_clip: float | None = None
    ema: float = 0.999
    data_noise: float = 0.0
    dequantize: bool = False
    flip: bool = False
    energy_limit: float = 1e4
    adversary_lr: float | None = None
    compile: Compile = "auto"
    chain_dtype: Literal["auto", "float32", "bfloat16"] = "auto"
    seed: int = 0
    log_every: int = 100
    sample_every: int = 1000
    checkpoint_every: int = 1000
    evaluate_every: int = 0
    evaluate_samples: int = 1000
    patience: int = 0

    def __post_init__(self) -> None:
        """Check the ranges.

        Raises:
            InputError: A setting has the wrong type, or: ``batch_size``, ``lr``, ``decay_after``, ``energy_limit``,
                ``log_every``, ``checkpoint_every``, ``adversary_lr`` or ``grad_clip`` is not positive; ``steps``,
                ``warmup``, ``sample_every``, ``evaluate_every``, ``patience``, ``seed`` or ``data_noise`` is negative;
                ``evaluate_samples`` is below 2; ``patience`` is positive without ``evaluate_every``; ``lr`` or
                ``data_noise`` is infinite; ``seed`` is 2³² or more; ``ema`` or one of ``betas`` is outside [0, 1).
        """
        for name in WHOLE:
            self._require(name, is_whole(getattr(self, name)), "a whole number")
            object.__setattr__(self, name, int(getattr(self, name)))
        for name in REAL:
            self._require(name, _is_real(getattr(self, name)), "a number")
            object.__setattr__(self, name, float(getattr(self, name)))
        for name in ("adversary_lr", "grad_clip"):
            value = getattr(self, name)
            self._require(name, value is None or (_is_real(value) and value > 0), "more than 0, or none")
        for name in ("steps", "warmup", "sample_every", "evaluate_every", "patience", "seed", "data_noise"):
            self._require(name, getattr(self, name) >= 0, "0 or more")
        for name in ("batch_size", "lr", "decay_after", "energy_limit", "log_every", "checkpoint_every"):
            self._require(name, getattr(self, name) > 0, "more than 0")
        self._require("evaluate_samples", self.evaluate_samples >= 2, "at least 2")
        if self.patience and not self.evaluate_every:
            raise InputError(f"patience={self.patience} needs evaluate_every above 0, or samples are not measured")
        for name in ("lr", "data_noise"):
            self._require(name, getattr(self, name) < float("inf"), "finite")
        self._require("seed", self.seed < 2**32, "less than 2**32")
        self._require("ema", 0 <= self.ema < 1, "in [0, 1)")
        self._require("betas", _are_betas(self.betas), "two numbers in [0, 1)")
        object.__setattr__(self, "betas", tuple(map(float, self.betas)))  # torch refuses an int next to a float
        schedules = ("inverse", "constant", "linear", "cosine")
        self._require("schedule", self.schedule in schedules, f"one of {', '.join(schedules)}")

        self._require("compile", self.compile in COMPILE, "auto, on or off")
        self._require("chain_dtype", self.chain_dtype in CHAIN_DTYPES, f"one of {', '.join(CHAIN_DTYPES)}")

    def _require(self, name: str, holds: bool, wanted: str) -> None:
        if not holds:
            raise InputError(f"{name} must be {wanted}, got {getattr(self, name)}")


def _is_real(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _are_betas(betas: Any) -> bool:
    pair = isinstance(betas, (tuple, list)) and len(betas) == 2
    return pair and all(_is_real(beta) and 0 <= beta < 1 for beta in betas)
