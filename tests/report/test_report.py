import contextlib
import hashlib
import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest
import torch

from adance import load
from adance.cli import main
from adance.data import load_data
from adance.energies import MLP
from adance.errors import DivergedError
from adance.objectives import AdaNCE
from adance.plot import save_grid
from adance.report import write_report
from adance.report.chain import energies_of, record_chain, still_frames
from adance.report.charts import energies_chart
from adance.report.images import saved_uri
from adance.samplers import Langevin
from adance.training import Settings, Trainer
from adance.training.run_folder import RunFolder


class Outline(HTMLParser):
    """Headings, landmarks, pictures without alternative text, and everything that the page would fetch."""

    def __init__(self, page):
        super().__init__()
        self.headings, self.tags, self.mute, self.fetched, self.ids = [], set(), [], [], []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        held = dict(attrs)
        self.tags.add(tag)
        if re.fullmatch("h[1-6]", tag):
            self.headings.append(int(tag[1]))
        if tag == "img" and not held.get("alt"):
            self.mute.append(attrs)
        if "id" in held:
            self.ids.append(held["id"])
        links = [held[name] for name in ("src", "href", "srcset", "data") if held.get(name)]
        self.fetched += [link for link in links if not link.startswith(("data:", "#"))]


def report(folder, *options):
    assert main(["report", str(folder), *options]) == 0
    return (folder / "report.html").read_text()


def bytes_of(folder):
    return {
        path: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != "report.html"
    }


@pytest.mark.parametrize("kind", ["image", "plane", "vector"])
def test_the_page_of_a_run_stands_alone_and_is_well_formed(kind, run_folder, capsys):
    folder = run_folder(kind)
    before = bytes_of(folder)
    page = report(folder)
    assert bytes_of(folder) == before
    assert capsys.readouterr().out == f"report: {folder / 'report.html'}\n"
    outline = Outline(page)
    assert outline.fetched == []
    assert not re.search(r"url\((?!#)", page)
    assert "@import" not in page
    assert outline.mute == []
    assert {"header", "main", "footer", "section", "input"} <= outline.tags
    assert outline.headings[0] == 1
    assert outline.headings.count(1) == 1
    assert all(b - a <= 1 for a, b in zip(outline.headings, outline.headings[1:], strict=False))
    assert len(outline.ids) == len(set(outline.ids))
    for title in ("Loss", "Energies", "AUC", "Effective sample share", "Settings"):
        assert f">{title}</h" in page


def test_the_page_shows_what_the_doctor_finds(run_folder):
    folder = run_folder("vector")
    row = RunFolder(folder).read_metrics()[-1] | {"energy_train": 0.0, "energy_held_out": 2.5, "energy_std": 1.0}
    report(folder)
    assert "Findings" not in (folder / "report.html").read_text(encoding="utf-8")
    lines = [json.dumps({**row, "step": step}) + "\n" for step in (100, 200, 300)]
    (folder / "metrics.jsonl").write_text("".join(lines), encoding="utf-8")
    report(folder)
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "<strong>overfitted energy</strong>: held-out rows have energies 2.5 standard deviations above" in page


def test_the_recording_of_the_page_is_the_chain_that_sampling_runs(run_folder):
    folder = run_folder("image")
    recording = json.loads(re.search(r'id="recording">(.*?)</script>', report(folder), re.S)[1])
    assert recording["labels"][0] == "step 0 of 40"
    assert len(recording["pictures"]) == len(recording["labels"]) == len(recording["energies"]) == 41
    assert len(set(recording["pictures"])) == 41

    run = load(folder)
    recorded = record_chain(run, 36, 36)
    assert torch.equal(recorded.frames[0], run.sample(36, steps=0))
    assert torch.equal(recorded.frames[-1], run.sample(36))
    assert recorded.energies[-1] == pytest.approx(float(run.score(run.sample(36)).mean()))


def test_long_chains_are_kept_at_some_of_their_steps(trained):
    recording = record_chain(load(trained["image"]), 40, 4, steps=200)
    assert recording.steps[0] == 0
    assert recording.steps[-1] == 200
    assert len(recording.steps) == 61
    assert len(recording.frames[0]) == 4
    assert len(recording.samples) == 40
    stills = still_frames(recording)
    assert stills[0] == 0
    assert stills[-1] == 60
    assert stills == sorted(set(stills))


def test_chains_of_no_step_have_one_frame(trained):
    recording = record_chain(load(trained["image"]), 4, 4, steps=0)
    assert recording.steps == [0]
    assert still_frames(recording) == [0]


def test_the_histogram_holds_what_was_scored(trained):
    run = load(trained["image"])
    data = run.reload_data()
    energies = energies_of(run, data, run.sample(10))
    assert {name: len(values) for name, values in energies.items()} == {
        "training data": 1000, "held-out data": 397, "samples": 10, "noise": 1000,
    }  # fmt: skip
    chart = energies_chart(energies)
    assert chart.legend == [
        ("training data", "var(--accent)", False), ("held-out data", "var(--accent)", True),
        ("samples", "var(--ink)", False), ("noise", "var(--muted)", False),
    ]  # fmt: skip
    assert chart.svg.count("; opacity: 0.18") == 3


def test_metrics_are_shown_regardless_of_their_columns(run_folder):
    folder = run_folder("image")
    rows = [
        {"name": "FD <x>", "value": 12.5, "spread": 0.25, "n": 1000, "extractor": "pixels", "seed": 0, "note": None},
        {"name": "IS", "value": None, "split": "test"},
    ]
    (folder / "evaluation.json").write_text(json.dumps({"measurements": rows}))
    page = report(folder)
    assert '<th scope="row">FD &lt;x&gt;</th><td>12.5 ± 0.25</td><td>1000</td><td>pixels</td>' in page
    assert '<th scope="col">note</th>' not in page
    assert '<th scope="row">IS</th><td>–</td>' in page


def test_a_run_whose_data_are_gone_still_has_a_page(run_folder):
    page = report(run_folder("vector"))  # its config does not say how to load them
    assert "held-out data" not in page
    assert "noise" in page


def test_a_sweep_has_a_table_pictures_and_what_went_wrong(tmp_path):
    options = ["--steps=20", "--energy.hidden=[8]", "--log_every=2", "--device=cpu", "--objective.sampler=Langevin"]
    options += ["--objective.sampler.noise_std=0.005", "--objective.sampler.step_size=1", "--objective.sampler.steps=2"]
    over = ["--over", "objective.interval=1,5", "--over", "energy_limit=1e4,1e-12"]
    assert main(["sweep", "--out", str(tmp_path / "s"), *over, *options]) == 3
    page = report(tmp_path / "s")
    outline = Outline(page)
    assert outline.fetched == outline.mute == []
    assert page.count("<figure><img") == 2
    assert '<th scope="row">1</th><td>1e4</td><td>1</td>' in page
    assert "interval=5,energy_limit=1e-12</code> diverged" in page
    assert "color-mix(" in page
    assert page.count('<ul class="legend">') == 1


@pytest.mark.parametrize(
    ("folder", "said"), [("nothing", "neither a run nor a sweep"), ("broken", "is not a sweep folder")]
)
def test_other_folders_are_refused_in_one_line(folder, said, tmp_path, capsys):
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "sweep.json").write_text('{"runs": 3}')
    assert main(["report", str(tmp_path / folder)]) == 2
    err = capsys.readouterr().err
    assert said in err
    assert len(err.splitlines()) == 1


def test_the_page_can_be_written_elsewhere(run_folder, tmp_path):
    folder = run_folder("image")
    assert main(["report", str(folder), "--out", str(tmp_path / "page.html")]) == 0
    assert (tmp_path / "page.html").exists()
    assert not (folder / "report.html").exists()


def test_saved_images_have_transparent_gaps_and_their_values(tmp_path):
    images = torch.linspace(-1, 1, 64).view(64, 1, 1, 1).expand(64, 1, 8, 8)
    save_grid(images, tmp_path / "grid.png")
    np.savez_compressed(tmp_path / "grid.npz", x=images.numpy())
    grid = opened(saved_uri(tmp_path / "grid.png", 640))
    side = grid.width // 8
    assert grid.size == (8 * 84, 8 * 84)
    for place in (0, 9, 63):
        x, y = place % 8 * side + side // 2, place // 8 * side + side // 2
        assert grid.getpixel((x, y))[0] == pytest.approx(float(images[place, 0, 0, 0] + 1) * 127.5, abs=3)
        assert grid.getpixel((x, y))[3] == 255
    assert grid.getpixel((side, side // 2))[3] == 0


@pytest.mark.parametrize(("kind", "name"), [("image", "00000020.npz"), ("plane", "00000040.png")])
def test_a_broken_picture_is_an_error_that_says_how_to_do_without_it(kind, name, run_folder, capsys):
    folder = run_folder(kind)
    file = folder / "samples" / name
    file.write_bytes(file.read_bytes()[:200])
    assert main(["report", str(folder)]) == 2
    err = capsys.readouterr().err
    assert f"{file.with_suffix('.png')} or its .npz is missing, truncated or corrupt" in err
    assert len(err.splitlines()) == 1
    file.with_suffix(".png").unlink()
    assert main(["report", str(folder)]) == 0


def opened(uri):
    import base64
    import io

    from PIL import Image

    return Image.open(io.BytesIO(base64.b64decode(uri.partition(",")[2]))).convert("RGBA")


def test_a_run_whose_chains_become_non_finite_has_a_page_that_says_so(tmp_path):
    wild = AdaNCE(Langevin(steps=30, step_size=3e38, noise_std=1.0), interval=1, start="rejuvenated", buffer=64)
    trainer = Trainer(
        MLP((1, 8, 8), [16], spectral_norm=False),
        wild,
        load_data("digits"),
        Settings(steps=1, batch_size=16, energy_limit=float("inf")),
        tmp_path,
        device="cpu",
        show_progress=False,
    )
    with contextlib.suppress(DivergedError):
        trainer.fit()
    page = write_report(tmp_path).read_text()
    assert "chains became non-finite" in page
    assert "NaN" not in re.sub(r"base64,[^\"]*", "", page)


def test_an_evaluation_of_an_earlier_step_is_marked(run_folder):
    folder = run_folder("vector")
    row = {"name": "AUROC", "value": 0.5, "group": "outliers", "samples": "noise"}
    for step, said in ((20, "Metrics at step 20; the run has reached step 40 since"), (40, "Metrics of this run")):
        (folder / "evaluation.json").write_text(json.dumps({"step": step, "measurements": [row]}))
        assert said in write_report(folder).read_text()
