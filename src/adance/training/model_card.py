"""The model card of a run: the README.md of its repository on the Hugging Face Hub."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from adance.yaml_text import dump

if TYPE_CHECKING:
    from adance.training.run import Run

PICTURE = "samples.png"

HEAD = """
# {name}

An energy-based model of {data}, trained with adance. Its energy E(x) is low where data are likely:
p(x) ∝ exp(−E(x)/T).
"""

USE = """
## Use

```console
$ pip install "adance[hub]"
$ adance sample hf://{repository} --n 64
```

```python
import adance

run = adance.load("hf://{repository}")
x = run.sample(64)  # (64, {shape}), in the units of the model: {units}
energies = run.score(x)  # (64,); a low energy means likely
```
"""


def model_card(
    run: "Run", repository: str, license: str, metrics: Sequence[Mapping[str, Any]], *, picture: bool
) -> str:
    """The text of the card, from the config and the evaluation of a run.

    Args:
        run: The run.
        repository: ``owner/name``.
        license: The Hub's identifier of the license of the weights.
        metrics: Rows of ``evaluation.json``, each with a name and a value; empty if the run was not evaluated.
        picture: Whether :data:`PICTURE` is in the repository.
    """
    about: dict[str, Any] = {"license": license, "library_name": "adance", "tags": ["adance", "energy-based-model"]}
    image = run.data["kind"] == "image"
    if image:
        about["pipeline_tag"] = "unconditional-image-generation"
    shape = ", ".join(map(str, run.event_shape))
    size = "×".join(map(str, run.event_shape))
    data = f"{run.data['name']} ({f'images of {size}' if image else f'vectors of {size} numbers'})"
    units = "in [−1, 1]" if image else "standardized; run.transform.to_data(x) gives those of the data"
    parts = [f"---\n{dump(about)}---\n", HEAD.format(name=repository.split("/")[1], data=data)]
    if picture:
        parts.append(f"\n![Samples]({PICTURE})\n")
    parts.append(USE.format(repository=repository, shape=shape, units=units))
    parts.append(_own_class(run.config["energy"]))
    parts.append(f"\n## Training\n\n{_table(('', ''), _training(run))}\n`config.yaml` has all settings.\n")
    parts.append(f"\n## Evaluation\n\n{_evaluation(metrics)}")
    return "".join(parts)


def _own_class(energy: Mapping[str, Any]) -> str:
    path = energy["class_path"]
    if path.startswith("adance."):
        return ""
    return (
        f"\nThe class of the energy, `{path}`, is not part of adance. If you trust its module, "
        f"`adance.trust({path.rpartition('.')[0]!r})` lets adance import it. Or pass the energy itself: "
        "`adance.load(…, energy=…)`.\n"
    )


def _training(run: "Run") -> list[tuple[str, str]]:
    config = run.config
    weights = sum(weight.numel() for weight in run.energy.parameters())
    n_train = run.data.get("n_train")
    rows = {
        "data": run.data["name"] + ("" if n_train is None else f", {n_train:,} rows"),
        "energy": f"{config['energy']['class_path']}, {weights:,} weights",
        "objective": config["objective"]["class_path"],
        "steps": f"{run.step:,}",
        **{name.replace("_", " "): str(config[name]) for name in ("batch_size", "lr", "seed") if name in config},
        "weights": run.weights,
    }
    return list(rows.items())


def _evaluation(metrics: Sequence[Mapping[str, Any]]) -> str:
    if not metrics:
        return "Not evaluated.\n"
    rows = [
        (m["name"], m.get("samples") or "", _number(m["value"], m.get("spread")), m.get("n") or "") for m in metrics
    ]
    return _table(("metric", "of", "value", "events"), rows) + "\nMeasured by `adance evaluate`.\n"


def _number(value: Any, spread: Any) -> str:
    if not isinstance(value, (int, float)):
        return "not finite" if value is None else str(value)
    return f"{value:.4g}" + (f" ± {spread:.2g}" if isinstance(spread, (int, float)) else "")


def _table(header: Iterable[Any], rows: Iterable[Iterable[Any]]) -> str:
    header = tuple(header)
    lines = [header, ["---"] * len(header), *rows]
    return "".join(f"| {' | '.join(str(cell).replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines)
