"""What trackers were told, read back by their own readers."""

import json
import re
import struct
import time

import numpy as np
import pytest
from accelerate import Accelerator
from PIL import Image

from adance.errors import InputError
from adance.training import Settings, Trainer
from adance.training.trackers import hyperparameters

STEPS = (2, 4, 6)


@pytest.fixture
def tracked(digits, parts, tmp_path, monkeypatch):
    """Train six steps on digits with a tracker, and resume for the last two; returns the run folder."""
    monkeypatch.chdir(tmp_path)

    def train(name):
        pytest.importorskip(name)
        energy, objective = parts("image")
        settings = Settings(steps=4, batch_size=16, log_every=2, sample_every=2)
        options = {"trackers": [name], "show_progress": False}
        Trainer(energy, objective, digits, settings, tmp_path / "run", **options).fit()
        return Trainer.resume(tmp_path / "run", steps=6, **options).fit().folder

    return train


def grid(folder, step):
    with Image.open(folder.samples / f"{step:08d}.png") as picture:
        return np.asarray(picture.convert("RGB"))


def test_tensorboard_reads_scalars_pictures_and_hyperparameters(tracked):
    folder = tracked("tensorboard")
    import io

    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(folder.path / "adance"), size_guidance={"images": 0})
    events.Reload()
    rows = folder.read_metrics()
    assert [row["step"] for row in rows] == list(STEPS)
    for name in rows[0].keys() - {"step"}:
        told = [(event.step, event.value) for event in events.Scalars(name)]
        assert [step for step, _ in told] == list(STEPS), name
        assert [value for _, value in told] == pytest.approx([row[name] for row in rows], rel=1e-6), name
    pictures = events.Images("samples")
    assert [picture.step for picture in pictures] == list(STEPS)
    for picture in pictures:
        with Image.open(io.BytesIO(picture.encoded_image_string)) as read:
            assert np.array_equal(np.asarray(read), grid(folder, picture.step))
    assert hyperparameters_of_tensorboard(folder) == expected(folder)


def hyperparameters_of_tensorboard(folder):
    """The hyperparameters of the last session, as TensorBoard's plugin for them reads them."""
    from tensorboard.backend.event_processing import plugin_event_multiplexer as multiplexer
    from tensorboard.plugins.hparams import metadata

    runs = multiplexer.EventMultiplexer()
    runs.AddRunsFromDirectory(str(folder.path / "adance"))
    runs.Reload()
    found = [
        metadata.parse_session_start_info_plugin_data(content[metadata.SESSION_START_INFO_TAG])
        for content in runs.PluginRunToTagToContent(metadata.PLUGIN_NAME).values()
        if metadata.SESSION_START_INFO_TAG in content
    ]
    assert len(found) == 2  # one of training, one of resuming
    last = max(found, key=lambda session: session.hparams["steps"].number_value)
    kinds = {name: value.WhichOneof("kind") for name, value in last.hparams.items()}
    return {name: getattr(value, kinds[name]) for name, value in last.hparams.items()}


def expected(folder):
    found = hyperparameters(folder.read_config())
    assert found["steps"] == 6
    assert found["objective"] == "adance.AdaNCE"
    assert found["objective.sampler.steps"] == 3
    assert found["energy.hidden"] == "[16]"
    return found


@pytest.mark.tracker
def test_mlflow_reads_metrics_pictures_and_parameters(tracked, monkeypatch, tmp_path):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path / 'mlflow.db'}")
    mlflow = pytest.importorskip("mlflow")
    pytest.importorskip("sqlalchemy")
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path / 'mlflow.db'}")
    folder = tracked("mlflow")
    client = mlflow.MlflowClient()
    experiment = client.get_experiment_by_name("adance")
    second, first = client.search_runs([experiment.experiment_id], order_by=["attributes.start_time DESC"])
    assert first.info.run_name == second.info.run_name == "run"
    assert first.info.status == second.info.status == "FINISHED"
    assert second.data.params == {name: str(value) for name, value in expected(folder).items()}
    rows = folder.read_metrics()
    for run, held in ((first, rows[:2]), (second, rows[2:])):
        for name in rows[0].keys() - {"step"}:
            told = client.get_metric_history(run.info.run_id, name)
            assert [(point.step, point.value) for point in told] == [(row["step"], row[name]) for row in held], name
    names = [item.path for item in client.list_artifacts(first.info.run_id, "images")]
    kept = [name for name in names if name.endswith(".png")]
    assert len(kept) == 2
    for step in (2, 4):
        name = next(name for name in kept if re.search(rf"step\D{step}\D", name))
        with Image.open(mlflow.artifacts.download_artifacts(run_id=first.info.run_id, artifact_path=name)) as read:
            assert np.array_equal(np.asarray(read.convert("RGB")), grid(folder, step))


@pytest.mark.tracker
def test_wandb_reads_metrics_pictures_and_settings(tracked, monkeypatch):
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    pytest.importorskip("wandb")
    folder = tracked("wandb")
    sessions = sorted(folder.path.glob("wandb/offline-run-*"))
    assert len(sessions) == 2
    history, settings = [], {}
    for session in sessions:
        rows, settings = read_wandb(next(session.glob("*.wandb")))
        history += rows
    assert {name: settings[name] for name in expected(folder)} == expected(folder)
    scalars = [{name: row[name] for name in row if not name.startswith(("_", "samples"))} for row in history]
    assert [row for row in scalars if row] == folder.read_metrics()
    pictures = [(row["_step"], row["samples.path"]) for row in history if "samples.path" in row]
    assert [step for step, _ in pictures] == list(STEPS)
    for step, name in pictures:
        with Image.open(next(folder.path.glob(f"wandb/*/files/{name}"))) as read:
            assert np.array_equal(np.asarray(read.convert("RGB")), grid(folder, step))


def read_wandb(path, seconds=30):
    """The rows of the history, and the settings, in a file of an offline run, which wandb's own process writes."""
    from wandb.proto import wandb_internal_pb2

    records, deadline = [], time.monotonic() + seconds
    while not records or not records[-1].HasField("exit"):
        assert time.monotonic() < deadline, f"{path} has no end"
        time.sleep(0.1)
        records = [wandb_internal_pb2.Record.FromString(data) for data in leveldb_records(path.read_bytes())]
    rows, settings = [], {}
    for record in records:
        settings |= {update.key: json.loads(update.value_json) for update in record.config.update}
        if record.HasField("history"):
            row = {".".join(item.nested_key) or item.key: json.loads(item.value_json) for item in record.history.item}
            rows.append(row)
    return rows, settings


def leveldb_records(content, block=32768):
    """The records of a log in LevelDB's format, in which wandb writes: pieces of a record never cross a block."""
    assert content[:4] == b":W&B"
    at, record = 7, b""
    while at + 7 <= len(content):
        if block - at % block < 7:
            at += block - at % block
            continue
        length, kind = struct.unpack_from("<HB", content, at + 4)
        record += content[at + 7 : at + 7 + length]
        at += 7 + length
        if kind in (1, 4):  # a whole record, or its last piece
            yield record
            record = b""


def test_names_of_hyperparameters_are_those_of_the_command_line():
    part = {"class_path": "adance.AdaNCE", "init_args": {"sampler": {"class_path": "adance.MALA", "init_args": None}}}
    config = {"steps": 5, "lr": 1e-3, "grad_clip": None, "betas": [0.0, 0.99], "flip": False, "objective": part}
    told = {"steps": 5, "lr": 1e-3, "grad_clip": "null", "betas": "[0.0, 0.99]", "flip": False}
    assert hyperparameters(config) == {**told, "objective": "adance.AdaNCE", "objective.sampler": "adance.MALA"}


def test_a_tracker_that_cannot_start_is_one_line(points, parts, tmp_path, monkeypatch):
    pytest.importorskip("tensorboard")

    def fail(self, *args, **settings):
        raise RuntimeError("nobody is\nlogged in")

    monkeypatch.setattr(Accelerator, "init_trackers", fail)
    trainer = Trainer(*parts("nce"), points, Settings(steps=1), tmp_path / "run", trackers=["tensorboard"])
    with pytest.raises(InputError, match=r"^cannot start the tracker .*: nobody is logged in$"):
        trainer.fit()


def test_trackers_are_closed_when_training_is_interrupted(points, parts, tmp_path, monkeypatch):
    pytest.importorskip("tensorboard")
    from accelerate.tracking import TensorBoardTracker

    closed = []
    monkeypatch.setattr(TensorBoardTracker, "finish", lambda self: closed.append(self.name))

    def interrupt(self, *_):
        raise KeyboardInterrupt

    trainer = Trainer(*parts("nce"), points, Settings(steps=1), tmp_path / "run", trackers=["tensorboard"])
    monkeypatch.setattr(trainer, "_optimize", interrupt)
    with pytest.raises(KeyboardInterrupt):
        trainer.fit()
    assert closed == ["tensorboard"]
