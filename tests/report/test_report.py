import contextlib
import hashlib
import json
import re
from html.parser import HTMLParser

import pytest
import torch

from adance import load
from adance.cli import main
from adance.data import load_data
from adance.energies import MLP
from adance.errors import DivergedError
from adance.objectives import AdaNCE
from adance.report import write_report
from adance.report.chain import record_chain, still_frames
from adance.report.energies import energies_of, histogram
from adance.samplers import Langevin
from adance.training import Settings, Trainer


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
    assert "url(" not in page
    assert "@import" not in page
    assert outline.mute == []
    assert {"header", "main", "footer", "section", "input"} <= outline.tags
    assert outline.headings[0] == 1
    assert outline.headings.count(1) == 1
    assert all(b - a <= 1 for a, b in zip(outline.headings, outline.headings[1:], strict=False))
    assert len(outline.ids) == len(set(outline.ids))
    for title in ("Loss", "Energies", "AUC", "Effective sample share", "Settings"):
        assert f">{title}</h" in page


def test_the_film_of_the_page_is_the_chain_that_sampling_runs(run_folder):
    folder = run_folder("image")
    film = json.loads(re.search(r'id="film">(.*?)</script>', report(folder), re.S)[1])
    assert film["labels"][0] == "step 0 of 56"
    assert len(film["pictures"]) == len(film["labels"]) == len(film["energies"]) == 57
    assert len(set(film["pictures"])) == 57

    run = load(folder)
    recorded = record_chain(run, 36, 36)
    assert torch.equal(recorded.frames[0], run.sample(36, steps=0))
    assert torch.equal(recorded.frames[-1], run.sample(36))
    assert recorded.energies[-1] == pytest.approx(float(run.score(run.sample(36)).mean()))


def test_long_chains_are_kept_at_some_of_their_steps(trained):
    film = record_chain(load(trained["image"]), 40, 4, steps=200)
    assert film.steps[0] == 0
    assert film.steps[-1] == 200
    assert len(film.steps) == 61
    assert len(film.frames[0]) == 4
    assert len(film.samples) == 40
    stills = still_frames(film)
    assert stills[0] == 0
    assert stills[-1] == 60
    assert stills == sorted(set(stills))


def test_chains_of_no_step_have_one_frame(trained):
    film = record_chain(load(trained["image"]), 4, 4, steps=0)
    assert film.steps == [0]
    assert still_frames(film) == [0]


def test_the_histogram_holds_what_was_scored(trained):
    run = load(trained["image"])
    data = run.reload_data()
    energies = energies_of(run, data, run.sample(10))
    assert {name: len(values) for name, values in energies.items()} == {
        "training data": 1000, "held-out data": 397, "samples": 10, "noise": 1000,
    }  # fmt: skip
    drawn = histogram(energies)
    assert dict(drawn.means).keys() == energies.keys()
    assert str(drawn.chart).count("<path") == 4


def test_measures_are_shown_whatever_their_columns(run_folder):
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
    ("folder", "said"), [("nothing", "of neither a run nor a sweep"), ("broken", "not the folder of a sweep")]
)
def test_what_is_no_run_and_no_sweep_is_refused_in_one_line(folder, said, tmp_path, capsys):
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


def test_pictures_of_training_lose_their_lines_and_nothing_else(tmp_path):
    from adance.pictures import save_grid
    from adance.report.images import file_uri, saved_grid_uri

    images = torch.linspace(-1, 1, 64).view(64, 1, 1, 1).expand(64, 1, 8, 8)
    save_grid(images, tmp_path / "grid.png")
    grid = opened(saved_grid_uri(tmp_path / "grid.png", (1, 8, 8), 4000))
    side = grid.width // 8 + 1
    for place in (0, 9, 63):
        x, y = place % 8 * side + side // 2, place // 8 * side + side // 2
        assert grid.getpixel((x, y))[0] == pytest.approx(float(images[place, 0, 0, 0] + 1) * 127.5, abs=3)
    assert grid.getpixel((side - 2, side // 2))[3] == 0  # the gap shows the ground
    # a picture of another layout is left as it is
    assert saved_grid_uri(tmp_path / "grid.png", (1, 7, 7), 4000) == file_uri(tmp_path / "grid.png", 4000)


def opened(uri):
    import base64
    import io

    from PIL import Image

    return Image.open(io.BytesIO(base64.b64decode(uri.partition(",")[2]))).convert("RGBA")


def test_a_run_whose_chains_leave_the_numbers_has_a_page_that_says_so(tmp_path):
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
    assert "chains left the numbers" in page
    assert "NaN" not in page


def test_an_evaluation_of_an_earlier_step_is_marked(run_folder):
    folder = run_folder("vector")
    row = {"name": "AUROC", "value": 0.5, "group": "outliers", "samples": "noise"}
    for step, said in ((20, "Measures at step 20; the run has 40 since"), (40, "Measures of this run")):
        (folder / "evaluation.json").write_text(json.dumps({"step": step, "measurements": [row]}))
        assert said in write_report(folder).read_text()
