"""What becomes of AdaNCE's gradient as its snapshot ages: how noisy it is, and where it points.

    python benchmarks/gradients.py [--seed 0]

A model of digits is trained by the default recipe for 2,000 steps. From there it continues for twelve intervals of K =
50, with the thesis's recipe and with the default's ratio, one snapshot at a time. In the last eight, after 0 to 49
steps, on average: the effective share of the weights of noise; the noise of the gradient of a batch of 128, relative to
the length of the mean gradient; the cosine between the mean gradient and likelihood's, with chains of the model as it
then is. And, for chains that are continued for longer, the cosine between likelihood's gradient with them and with the
short ones. The table goes into docs/long-intervals-appendix.md. Ten minutes.
"""

import argparse
import copy
import tempfile
from collections import defaultdict
from pathlib import Path

import torch
from intervals import DOCS, RECIPES, Recipe, settings_of, short_run
from thesis_figures import put_between_markers
from torch import Tensor, nn
from torch.nn.functional import cosine_similarity

import adance
from adance.energies import freeze
from adance.energies.energy import eval_mode
from adance.objectives import Contrastive
from adance.samplers import run_chains
from adance.samplers.resampling import effective_sample_share

BEGIN, END = "<!-- table of gradients: written by benchmarks/gradients.py -->", "<!-- end of table -->"
STEPS, INTERVAL, BATCH, WARM_INTERVALS, INTERVALS = 2000, 50, 128, 4, 12
AGES = (0, 1, 3, 5, 10, 20, 49)
LONGER = (60, 120, 300, 1000)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.set_num_threads(1)
    data = adance.load_data("digits")
    x = data.batch(torch.arange(len(data.train)))
    with tempfile.TemporaryDirectory() as folder:
        energy, run = trained(data, args.seed, Path(folder) / "run")
    assert run.buffer is not None
    lines = ["| ratio | steps since the snapshot | effective share | noise of a batch | cosine with likelihood's |"]
    lines.append("|---|---:|---:|---:|---:|")
    for title, recipe in {"T_r = 1": RECIPES["thesis-K50"], "T_r = 0.005": RECIPES["one-K50"]}.items():
        lines += [f"| {title} | {row}" for row in intervals(recipe, energy, run, x, args.seed)]
    text = "\n".join([*lines, "", short_run_bias(energy, run, x)])
    print(text)
    put_between_markers(DOCS / "long-intervals-appendix.md", text, BEGIN, END)


def trained(data: adance.Dataset, seed: int, out: Path) -> tuple[nn.Module, adance.Run]:
    """The energy in training, and the run, which has its frozen copy and its chains."""
    torch.manual_seed(seed)
    energy = adance.MLP(data.event_shape)
    recipe = RECIPES["pinned-K10"]
    settings = settings_of(recipe, steps=STEPS, seed=seed, ema=0.0)
    options = {"device": "cpu", "show_progress": False}
    return energy, adance.Trainer(energy, recipe.objective(), data, settings, out, **options).fit()


def intervals(recipe: Recipe, energy: nn.Module, run: adance.Run, x: Tensor, seed: int) -> list[str]:
    """Train on from ``run``, look on in the last intervals, and average what was seen."""
    generator, seen = torch.Generator().manual_seed(seed), defaultdict(list)
    loop, energy = settings_of(recipe), copy.deepcopy(energy)
    objective = recipe.objective().build(energy, x, batch_size=BATCH, generator=generator)
    buffer = objective.noise.chains.starts.buffer.samples.copy_(run.buffer)
    optimizer = torch.optim.Adam(energy.parameters(), loop.lr, loop.betas)
    for step in range(INTERVALS * INTERVAL):
        age, watched = step % INTERVAL, step >= WARM_INTERVALS * INTERVAL
        if watched and age == 0:
            noise = continued(objective.noise.frozen, buffer, 30, generator)
        if watched and age in AGES:
            with eval_mode(energy):
                seen[age].append(look(objective, energy, x, noise, buffer, generator))
        batch = x[torch.randint(len(x), (BATCH,), generator=generator)]
        optimizer.zero_grad()
        out = objective.loss(energy, batch, generator)
        out.value.backward()
        optimizer.step()
        objective.after_step(energy, step + 1, out)
    means = {age: torch.tensor(looks).mean(0).tolist() for age, looks in seen.items()}
    return [f"{age} | {share:.3f} | {noise:.2f} | {cosine:.2f} |" for age, (share, noise, cosine) in means.items()]


def continued(energy: nn.Module, x: Tensor, steps: int, generator: torch.Generator) -> Tensor:
    return run_chains(short_run(), energy, x, steps, generator=generator).x


def look(
    objective: Contrastive, energy: nn.Module, x: Tensor, noise: Tensor, buffer: Tensor, g: torch.Generator
) -> tuple[float, float, float]:
    """Effective share, relative noise of one batch's gradient, cosine with likelihood's."""
    mean = ratio_gradient(objective, energy, x, noise)
    batches = torch.split(torch.randperm(len(noise), generator=g), BATCH)[:-1]
    rows = [x[torch.randint(len(x), (BATCH,), generator=g)] for _ in batches]
    each = [ratio_gradient(objective, energy, data, noise[batch]) for data, batch in zip(rows, batches, strict=True)]
    deviation = torch.stack([(gradient - mean).square().sum() for gradient in each]).mean().sqrt()
    likelihood = likelihood_gradient(energy, x, continued(freeze(energy), buffer, 30, g))
    share = effective_sample_share(log_ratio(objective, energy, noise))
    return float(share), float(deviation / mean.norm()), float(cosine_similarity(mean, likelihood, dim=0))


def log_ratio(objective: Contrastive, energy: nn.Module, x: Tensor) -> Tensor:
    with torch.no_grad():
        return (objective.noise.frozen(x) - energy(x)) / objective.temperature


def ratio_gradient(objective: Contrastive, energy: nn.Module, x: Tensor, noise: Tensor) -> Tensor:
    """Of the logistic loss, by its weights."""
    r_data, r_noise = log_ratio(objective, energy, x), log_ratio(objective, energy, noise)
    c = objective.contrast.log_z_offset(r_data, r_noise[:, None]) if objective.log_ratio.constant == "centered" else 0.0
    return gradient(energy, x, torch.sigmoid(c - r_data), noise, torch.sigmoid(r_noise - c))


def likelihood_gradient(energy: nn.Module, x: Tensor, samples: Tensor) -> Tensor:
    return gradient(energy, x, torch.ones(len(x)), samples, torch.ones(len(samples)))


def gradient(energy: nn.Module, x: Tensor, weights: Tensor, noise: Tensor, noise_weights: Tensor) -> Tensor:
    loss = (weights * energy(x)).mean() - (noise_weights * energy(noise)).mean()
    return torch.cat([part.flatten() for part in torch.autograd.grad(loss, list(energy.parameters()))])


def short_run_bias(energy: nn.Module, run: adance.Run, x: Tensor) -> str:
    """The cosines of likelihood's gradient with longer chains."""
    generator = torch.Generator().manual_seed(0)
    samples, at = run.buffer, 0
    assert samples is not None
    found = {}
    for steps in (30, *LONGER):
        samples, at = continued(run.energy, samples, steps - at, generator), steps
        with eval_mode(energy):
            found[steps] = likelihood_gradient(energy, x, samples)
    short = found.pop(30)
    said = [f"{steps}: {cosine_similarity(short, other, dim=0):.2f}" for steps, other in found.items()]
    lengths = [f"{other.norm() / short.norm():.1f}" for other in found.values()]
    return (
        "Likelihood's gradient with chains of 30 steps from the buffer, and with chains that continue; cosine after "
        f"this many steps in all: {', '.join(said)}; length relative to the short ones': {', '.join(lengths)}."
    )


if __name__ == "__main__":
    main()
