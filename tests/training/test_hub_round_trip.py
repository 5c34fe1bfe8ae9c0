"""Runs on a hub: pushed, listed, loaded and sampled through huggingface_hub's own client and a local server."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import yaml
from hub_server import TOKEN, serving

from adance import load, load_pretrained
from adance.cli import main
from adance.errors import InputError
from adance.training.pretrained import FOLDERS

constants = pytest.importorskip("huggingface_hub.constants")


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """A hub to which this process is logged in, with an empty cache; commands run in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    # the server has the older protocol of large files; versions without the name need hf_xet to use the newer one
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True, raising=False)
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    with serving() as (held, address):
        monkeypatch.setenv("HF_ENDPOINT", address)
        yield held


@pytest.fixture
def run(tmp_path):
    """A run of digits with an evaluation and a picture."""
    folder = tmp_path / "digits"
    shutil.copytree(FOLDERS / "digits", folder)
    measured = '{"name": "kernel | distance", "value": 0.25, "spread": 0.01, "samples": "held-out data", "n": 397}'
    text = f'{{"step": 8000, "weights": "moving average", "measurements": [{measured}]}}'
    (folder / "evaluation.json").write_text(text, encoding="utf-8")
    (folder / "samples").mkdir()
    (folder / "samples" / "00008000.png").write_bytes(b"a picture")
    (folder / "secret.pkl").write_bytes(b"no part of a run")
    return load(folder)


def test_a_run_is_pushed_listed_loaded_and_sampled(hub, run):
    from huggingface_hub import HfApi

    address = run.push_to_hub("ann/digits")
    assert address == f"hf://ann/digits@{hub.find('ann/digits')[0]}"
    names = set(HfApi(endpoint=os.environ["HF_ENDPOINT"]).list_repo_files("ann/digits"))
    weights = {f"checkpoints/00008000/{name}" for name in ("average.safetensors", "state.json")}
    small = {"config.yaml", "data.json", "metrics.jsonl", "evaluation.json", "samples.png", "README.md"}
    assert names == {".gitattributes", *small, *weights}
    pushed = hub.find("ann/digits")[1]
    for name in names - {".gitattributes", "README.md", "samples.png"}:
        assert pushed[name] == (run.folder.path / name).read_bytes(), name

    found = load("hf://ann/digits")
    for name in names - {".gitattributes"}:
        assert (found.folder.path / name).read_bytes() == pushed[name], name
    assert torch.equal(found.sample(2, steps=5), run.sample(2, steps=5))
    assert found.config == run.config
    assert load(address).step == 8000


def test_the_card_says_what_it_is_how_to_use_it_and_how_good_it_is(hub, run):
    run.push_to_hub("ann/digits", license="mit")
    card = hub.find("ann/digits")[1]["README.md"].decode()
    _, head, text = card.split("---\n", 2)
    about = yaml.safe_load(head)
    assert about["license"] == "mit"
    assert about["library_name"] == "adance"
    assert "energy-based-model" in about["tags"]
    assert about["pipeline_tag"] == "unconditional-image-generation"
    for words in ('adance.load("hf://ann/digits")', "(64, 1, 8, 8)", "AdaNCE", "8,000", "1,400 rows", "](samples.png)"):
        assert words in text, words
    assert "| kernel \\| distance | held-out data | 0.25 ± 0.01 | 397 |" in text


def test_another_run_replaces_the_one_that_was_there(hub, run, tmp_path):
    run.push_to_hub("ann/digits")
    other = load_pretrained("digits")
    later = tmp_path / "later"
    shutil.copytree(other.folder.path, later)
    (later / "checkpoints" / "00008000").rename(later / "checkpoints" / "00000100")
    state = later / "checkpoints" / "00000100" / "state.json"
    text = state.read_text(encoding="utf-8").replace('"step": 8000', '"step": 100')
    state.write_text(text.split(', "crc32"')[0] + "}", encoding="utf-8")
    load(later).push_to_hub("ann/digits")
    found = load("hf://ann/digits")
    assert found.step == 100
    assert not (found.folder.path / "evaluation.json").exists()  # it was of the other run
    assert "Not evaluated." in (found.folder.path / "README.md").read_text(encoding="utf-8")


def test_a_revision_is_a_branch_or_a_commit(hub, run):
    first = run.push_to_hub("ann/digits").partition("@")[2]
    hub.commit("ann/digits", {"README.md": b"empty"})
    hub.repositories["ann/digits"]["refs"]["v1"] = first
    for revision in (first, "v1"):
        assert load(f"hf://ann/digits@{revision}").step == 8000
    with pytest.raises(InputError, match=r"^hf://ann/digits is not an adance run: the repository has no config"):
        load("hf://ann/digits")


def test_commands_work_on_a_copy(hub, run, tmp_path, capsys):
    commit = run.push_to_hub("ann/digits").partition("@")[2]
    assert main(["sample", "hf://ann/digits", "--n", "4", "--steps", "5"]) == 0
    assert main(["score", "hf://ann/digits", "digits", "--out", "scores.csv"]) == 0
    copy = tmp_path / "runs" / f"hf-ann-digits-{commit[:8]}"
    assert f"samples: {copy.relative_to(tmp_path) / 'samples' / 'sample-0.png'}" in capsys.readouterr().out
    assert not (load("hf://ann/digits").folder.path / "samples").exists()


@pytest.mark.pages
def test_what_the_page_shows_runs(hub, run, tmp_path):
    page = (Path(__file__).parents[2] / "docs" / "hub.md").read_text(encoding="utf-8")
    shutil.copytree(run.folder.path, tmp_path / "runs" / "digits")
    names = {}
    for text in re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL):
        exec(compile(text, "docs/hub.md", "exec"), names)
    assert names["address"].startswith("hf://owner/name@")
    commands = re.findall(r"^\$ adance (.*)", page, re.MULTILINE)
    for line in commands:
        assert main(line.split()) == 0, line
    assert len(commands) == 3
    assert (tmp_path / "samples.png").exists()


def test_nothing_but_the_files_of_a_run_is_downloaded(hub, run):
    run.push_to_hub("ann/digits")
    files = hub.find("ann/digits")[1]
    hub.commit("ann/digits", files | {"model.pkl": b"!", "checkpoints/00008000/objective.pt": b"!", "x.py": b"!"})
    found = load("hf://ann/digits").folder.path
    kept = {str(path.relative_to(found)) for path in found.rglob("*") if path.is_file()}
    assert kept == set(files)
    assert not any(name.endswith((".pkl", ".pt", "x.py")) for name in hub.requests)


def test_a_copy_in_the_cache_opens_without_a_network(hub, run, monkeypatch):
    run.push_to_hub("ann/digits")
    load("hf://ann/digits")
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    assert load("hf://ann/digits").step == 8000


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("hf://ann/missing", "hf://ann/missing: there is no such repository; if it is private, log in"),
        ("hf://ann/digits@v9", "hf://ann/digits@v9: the repository has no such branch, tag or commit"),
        ("hf://ann/other", "hf://ann/other is not an adance run: the repository has no config.yaml"),
        ("hf://ann/broken", "energy and objective and steps"),
        ("hf://digits", "'hf://digits' is not a run on the Hub: use hf://owner/name"),
        ("hf://ann/digits@", "'hf://ann/digits@' is not a run on the Hub"),
    ],
)
def test_what_is_not_there_is_one_line(hub, run, address, message, capsys):
    hub.commit("ann/digits", {})
    hub.commit("ann/other", {"pytorch_model.bin": b"!", ".gitattributes": b""})
    hub.commit("ann/broken", {"config.yaml": b"steps: 5\n"})
    assert main(["sample", address]) == 2
    error = capsys.readouterr().err
    assert len(error.splitlines()) == 1, error
    assert message.replace("energy and objective and steps", "must contain energy, objective and steps") in error


def test_damaged_weights_are_one_line(hub, run, capsys):
    run.push_to_hub("ann/digits")
    files = dict(hub.find("ann/digits")[1])
    name = "checkpoints/00008000/average.safetensors"
    files[name] = files[name][:-1] + bytes([files[name][-1] ^ 1])
    hub.commit("ann/digits", files)
    assert main(["sample", "hf://ann/digits"]) == 2
    error = capsys.readouterr().err
    assert "average.safetensors is damaged: it does not match its checksum" in error
    assert len(error.splitlines()) == 1


def test_no_network_is_one_line(hub, run, monkeypatch, capsys):
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")  # where nothing listens
    assert main(["sample", "hf://ann/digits"]) == 2
    error = capsys.readouterr().err
    assert "hf://ann/digits: the Hub cannot be reached, and its cache has no copy" in error
    assert len(error.splitlines()) == 1
    with pytest.raises(InputError, match=r"^hf://ann/digits: Connect\w*Error: .*refused"):
        run.push_to_hub("ann/digits")


def test_a_push_needs_a_login_and_a_plain_name(hub, run, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", "hf_wrong")
    with pytest.raises(InputError, match=r"^hf://ann/digits: .*401"):
        run.push_to_hub("ann/digits")
    with pytest.raises(InputError, match="has a revision: push to owner/name"):
        run.push_to_hub("ann/digits@v1")
    assert "ann/digits" not in hub.repositories


def test_a_missing_library_is_named():
    code = "import sys; from adance.training.hub import download; sys.modules['huggingface_hub'] = None\n"
    code += "try: download('hf://ann/digits')\nexcept ValueError as error: print(error)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "hf://ann/digits needs huggingface_hub: pip install 'adance[hub]'\n"


def test_a_new_process_reaches_the_hub(tmp_path):
    code = "from adance.training.hub import download\ntry: download('hf://ann/digits')\n"
    code += "except ValueError as error: print(error)"
    env = {**os.environ, "HF_ENDPOINT": "http://127.0.0.1:9", "HF_HOME": str(tmp_path)}  # where nothing listens
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=env)
    assert done.stdout.startswith("hf://ann/digits: the Hub cannot be reached, and its cache has no copy")
