"""The numbers on a page are those of the run or sweep."""

import json
import re
from statistics import fmean, stdev

import pytest
import torch

from adance import load
from adance.cli import main
from adance.report import write_report
from adance.report.chain import energies_of
from adance.training.run_folder import RunFolder


def near(text, value):
    """Whether a printed number is a value to four digits."""
    return float(text.replace("−", "-").replace(",", "")) == pytest.approx(value, rel=1e-3, abs=1e-12)


def test_the_numbers_on_the_page_are_those_of_the_run(run_folder):
    folder = run_folder("image")
    page = write_report(folder).read_text()
    run = load(folder)
    samples = run.sample(256)

    means = dict(re.findall(r"<div><dt>([^<]+)</dt><dd>([^<]+)</dd></div>", page.partition('<dl class="means"')[2]))
    wanted = energies_of(run, run.reload_data(), samples)
    assert all(near(means[name], float(values.mean())) for name, values in wanted.items())

    first, last = re.search('aria-label="Mean energy along the chains, from ([^ ]+) to ([^"]+)"', page).groups()
    assert near(first, float(run.score(run.sample(256, steps=0)[:36]).mean()))
    assert near(last, float(run.score(samples[:36]).mean()))
    assert f'<b id="energy">{last}</b>' in page

    rows = run.folder.read_metrics()
    for title, label, metric in (
        ("Loss", "loss", "loss"),
        ("AUC", "AUC", "auc"),
        ("Log-ratio", "noise", "ratio_noise"),
    ):
        words = re.search(f'aria-label="{title}\\.[^"]*?{label}: from ([^"]*?)\\.(?: |")', page)[1]
        values = [row[metric] for row in rows]
        wanted = (values[0], values[-1], min(values), max(values))
        printed = re.fullmatch("(.+) to (.+), between (.+) and (.+)", words).groups()
        assert all(map(near, printed, wanted))

    assert "MLP · 40 steps · " in page
    assert re.findall("<figcaption>step ([^<]+)</figcaption>", page) == ["20", "40"]
    settings = dict(re.findall("<div><dt>([^<]+)</dt><dd>([^<]+)</dd></div>", page.partition('"settings"')[2]))
    assert (settings["batch size"], settings["seed"], settings["data"]) == ("16", "0", "digits")


def test_the_plane_of_the_page_has_data_and_chains_where_they_are(run_folder):
    folder = run_folder("plane")
    page = write_report(folder).read_text()
    run, recording = load(folder), json.loads(re.search(r'id="recording">(.*?)</script>', page, re.S)[1])
    data = run.reload_data()
    x = data.batch(torch.arange(min(500, len(data.test))), "test")
    center, half = x.mean(0), 1.25 * (x - x.mean(0)).abs().max()

    def place(points):
        return ((points - center) / half * torch.tensor([1, -1]) + 1) * 200

    drawn = re.findall('<circle cx="([^"]+)" cy="([^"]+)" r="1.6"', page)
    assert torch.allclose(torch.tensor([[float(a), float(b)] for a, b in drawn]), place(x), atol=0.06)
    ends = torch.tensor(recording["points"][-1]).view(-1, 2)
    assert torch.allclose(ends, place(run.sample(300)), atol=0.06)


def test_the_table_of_a_sweep_has_the_means_of_its_runs(tmp_path):
    options = ["--steps=10", "--energy.hidden=[8]", "--log_every=5", "--device=cpu", "--objective=NCE"]
    assert main(["sweep", "--out", str(tmp_path), "--over", "lr=0.001,0.01", "--over", "seed=0,1", *options]) == 0
    page = write_report(tmp_path).read_text()
    head = re.findall('<th scope="col">([^<]+)</th>', page)
    for lr, cells in re.findall(r'<tr><th scope="row">([^<]+)</th>(.*?)</tr>', page, re.S):
        printed = dict(zip(head[1:], re.findall("<td>([^<]*)</td>", cells), strict=True))
        runs = [RunFolder(folder) for folder in tmp_path.iterdir() if f"lr={lr}," in folder.name]
        assert printed["runs"] == str(len(runs)) == "2"
        for column, metric in (("loss", "loss"), ("energy data", "energy_data")):
            values = [run.read_metrics()[-1][metric] for run in runs]
            mean, spread = printed[column].replace("−", "-").split(" ± ")
            assert float(mean) == pytest.approx(fmean(values), rel=0.005)
            assert float(spread) == pytest.approx(stdev(values), rel=0.05)
