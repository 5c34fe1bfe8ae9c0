"""Values of the wrong type in the files of a run or a sweep: one line that names the file and the key."""

import json
import shutil

import pytest
import yaml

from adance.cli import main

RUN_OPTIONS = "--energy.hidden [4] --objective NCE --batch_size 16 --steps 2 --sample_every 0 --device cpu --quiet"


def change(path, key, value):
    """Set a key, as in ``transform.low``, in a JSON or YAML file, and drop its checksum."""
    tree = yaml.safe_load(path.read_text(encoding="utf-8"))
    tree.pop("crc32", None)
    *inner, last = key.split(".")
    part = tree
    for name in inner:
        part = part[int(name) if isinstance(part, list) else name]
    part[last] = value
    path.write_text(json.dumps(tree) if path.suffix == ".json" else yaml.safe_dump(tree), encoding="utf-8")


@pytest.mark.parametrize(
    ("file", "key", "value"),
    [
        ("data.json", "kind", 3),
        ("data.json", "event_shape", "x"),
        ("data.json", "event_shape", [8, 8]),
        ("data.json", "event_shape", [1, 8, 0]),
        ("data.json", "event_shape", [1, 8.5, 8]),
        ("data.json", "transform", None),
        ("data.json", "transform.low", "x"),
        ("data.json", "transform.high", [1]),
        ("data.json", "transform.low", 99),
        ("data.json", "name", ["digits"]),
        ("data.json", "columns", 3),
        ("data.json", "image_size", "8"),
        ("checkpoints/00000006/state.json", "step", "6"),
        ("checkpoints/00000006/state.json", "step", 7),
        ("checkpoints/00000006/state.json", "seconds", None),
        ("checkpoints/00000006/state.json", "log_normalizer", ""),
        ("checkpoints/00000006/state.json", "chain_runs", [1]),
        ("checkpoints/00000006/state.json", "scales", 3),
        ("checkpoints/00000006/state.json", "checksums", [1]),
        ("config.yaml", "energy", 3),
        ("config.yaml", "energy.class_path", 3),
        ("config.yaml", "energy.init_args", [3]),
        ("config.yaml", "energy.init_args.hidden", 3),
        ("config.yaml", "energy.init_args.activation", ["relu"]),
        ("config.yaml", "objective.init_args.pool", "many"),
        ("config.yaml", "objective.init_args.sampler", 3),
        ("config.yaml", "objective.init_args.sampler.init_args.steps", 2.5),
        ("config.yaml", "steps", "six"),
        ("config.yaml", "betas", 0.9),
        ("config.yaml", "data", 3),
        ("config.yaml", "data_seed", "x"),
    ],
)
def test_a_wrong_value_in_a_run_names_file_and_key(file, key, value, adance, trained_run):
    change(trained_run / file, key, value)
    answer = adance("sample", "run", "--n", "2", "--steps", "1", "--out", "x.npz")
    assert answer.status == 2
    assert file.rpartition("/")[2] in answer.error
    assert key.rpartition(".")[2] in answer.error or "MLP" in answer.error


@pytest.mark.parametrize(
    ("key", "value"),
    [("mean", [1.0]), ("std", ["x", "y", "z"]), ("std", [1.0, -1.0, 1.0]), ("transform.std", [1.0]), ("mean", 3)],
)
def test_a_wrong_value_of_vectors_names_file_and_key(key, value, adance, rows, tmp_path):
    assert adance("train", "--data", "rows.csv", *RUN_OPTIONS.split(), "--out", "run").status == 0
    change(tmp_path / "run" / "data.json", key, value)
    answer = adance("sample", "run", "--n", "2", "--steps", "1", "--out", "x.npz")
    assert answer.status == 2
    assert f"data.json: {key}" in answer.error


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sweep") / "sweep"
    options = ["--data", "digits", *RUN_OPTIONS.split(), "--over", "seed=0"]
    options = [word for word in options if word not in ("--device", "cpu")]
    assert main(["sweep", *options, "--out", str(folder)]) == 0
    return folder


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("keys", 3),
        ("settings", 3),
        ("settings", "steps: x\nenergy: {}\nobjective: {}"),
        ("settings", "steps: 3\nenergy: 4\nobjective: {}"),
        ("settings", "steps: 3"),
        ("runs", {"a": 1}),
        ("runs.0", 3),
        ("runs.0.values", [1]),
        ("runs.0.name", None),
    ],
)
def test_a_wrong_value_in_a_sweep_names_the_file(key, value, swept, adance, tmp_path):
    folder = shutil.copytree(swept, tmp_path / "sweep")
    if key == "runs.0":
        held = json.loads((folder / "sweep.json").read_text())
        (folder / "sweep.json").write_text(json.dumps({**held, "runs": [value]}))
    else:
        change(folder / "sweep.json", key, value)
    answer = adance("report", "sweep")
    assert answer.status == 2
    assert "sweep.json" in answer.error


@pytest.mark.parametrize(
    "content", ["{", "[]", '{"m": [{"name": 3, "value": 1}]}', '{"m": [{"name": "a", "value": [1]}]}']
)
def test_a_broken_evaluation_is_not_dropped_in_silence(content, adance, trained_run):
    (trained_run / "evaluation.json").write_text(content)
    answer = adance("report", "run")
    assert answer.status == 2
    assert "evaluation.json" in answer.error
