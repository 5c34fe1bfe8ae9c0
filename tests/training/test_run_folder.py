import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from adance.errors import InputError
from adance.training.run_folder import RunFolder

DATA = {"kind": "vector", "event_shape": [2], "transform": {"type": "identity"}}
CONFIG = {"energy": {"class_path": "a.B"}, "objective": {"class_path": "a.C"}, "steps": 3}


def test_metrics_with_a_last_line_that_was_cut_are_read_and_trimmed(tmp_path):
    folder = RunFolder(tmp_path)
    for step in (1, 2, 3):
        folder.append_metrics({"step": step, "loss": float("nan") if step == 2 else 0.5})
    whole = folder.metrics.read_text()
    for cut in ('{"step": 4, "loss": 0.2', '{"st', "{"):
        folder.metrics.write_text(whole + cut)
        assert [row["step"] for row in folder.read_metrics()] == [1, 2, 3]
    folder.trim_metrics(2)
    assert folder.metrics.read_text() == "".join(whole.splitlines(keepends=True)[:2])
    folder.append_metrics({"step": 3, "loss": 0.1})
    assert [row["step"] for row in folder.read_metrics()] == [1, 2, 3]


def test_any_flipped_bit_of_the_metrics_costs_one_line_and_is_said(tmp_path, caplog):
    folder = RunFolder(tmp_path)
    for step in (1, 2, 3):
        folder.append_metrics({"step": step, "sample_distance": 1 / step})
    rows, whole = folder.read_metrics(), folder.metrics.read_bytes()
    second = whole.index(b"\n") + 1
    for position in range(second, whole.index(b"\n", second)):
        for bit in range(8):
            damaged = bytearray(whole)
            damaged[position] ^= 1 << bit
            folder.metrics.write_bytes(damaged)
            caplog.clear()
            found = folder.read_metrics()
            if found != rows:  # as it is if only a space became another one
                assert [row for row in found if row in rows] == found
                assert found[-1] == rows[-1]
                assert "damaged line" in caplog.text


def test_metrics_without_checksums_are_read(tmp_path):
    folder = RunFolder(tmp_path)
    folder.metrics.write_text('{"step": 1, "loss": 0.5}\n')
    assert folder.read_metrics() == [{"step": 1, "loss": 0.5}]


def test_numbers_that_json_does_not_have_are_null(tmp_path):
    folder = RunFolder(tmp_path)
    folder.append_metrics({"step": 1, "loss": float("nan"), "v": float("inf"), "auc": 0.5})

    def refuse(name):
        raise AssertionError(f"{name} is not JSON")

    whole = folder.metrics.read_bytes()
    line = json.loads(whole, parse_constant=refuse)
    assert line.pop("crc32")
    assert line == {"step": 1, "loss": None, "v": None, "auc": 0.5}
    assert folder.read_metrics() == [{"step": 1, "auc": 0.5}]
    folder.trim_metrics(1)
    assert folder.metrics.read_bytes() == whole


def test_a_run_without_metrics_has_none(tmp_path):
    assert RunFolder(tmp_path).read_metrics() == []
    RunFolder(tmp_path).trim_metrics(5)
    assert RunFolder(tmp_path).read_metrics() == []


def test_the_first_free_number_is_claimed(tmp_path):
    for number in (1, 2, 4):
        (tmp_path / f"digits-AdaNCE-{number}").mkdir()
    assert RunFolder.claim(tmp_path, "digits-AdaNCE").path == tmp_path / "digits-AdaNCE-3"
    assert RunFolder.claim(tmp_path, "digits-AdaNCE").path == tmp_path / "digits-AdaNCE-5"
    assert RunFolder.claim(tmp_path / "new", "moons-NCE").path == tmp_path / "new" / "moons-NCE-1"


def test_many_at_once_claim_folders_of_their_own(tmp_path):
    with ThreadPoolExecutor(8) as pool:
        claimed = list(pool.map(lambda _: RunFolder.claim(tmp_path / "runs", "moons-NCE").path, range(40)))
    assert sorted(claimed) == sorted(tmp_path / "runs" / f"moons-NCE-{number}" for number in range(1, 41))


def test_a_folder_that_cannot_be_claimed_is_one_line(tmp_path):
    (tmp_path / "runs").write_text("")
    with pytest.raises(InputError, match=r"cannot create a run folder in .*: .*runs is a file, not a folder"):
        RunFolder.claim(tmp_path / "runs", "moons-NCE")


def test_a_folder_with_a_run_is_taken_and_stays_as_it_is(tmp_path):
    folder = RunFolder(tmp_path / "run")
    folder.create(CONFIG, DATA)
    before = {path: path.read_bytes() for path in folder.path.iterdir()}
    with pytest.raises(InputError, match="already holds a run"):
        folder.create({"steps": 4}, {})
    assert {path: path.read_bytes() for path in folder.path.iterdir()} == before
    assert folder.read_config() == CONFIG
    assert folder.read_data_description() == DATA


@pytest.mark.parametrize("written", [None, 1, 99])
def test_a_run_of_another_format_says_so(written, tmp_path):
    folder = RunFolder(tmp_path / "run")
    folder.create(CONFIG, DATA)
    (folder.path / "data.json").write_text(json.dumps(DATA if written is None else {"format": written, **DATA}))
    for read in (folder.read_config, folder.read_data_description):
        with pytest.raises(
            InputError, match=f"has run format {written or 1}, and this version of adance reads format 2"
        ):
            read()


def test_where_no_folder_can_be(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match="is a file"):
        RunFolder(tmp_path / "file").refuse_taken()
    with pytest.raises(InputError, match="cannot write the run folder"):
        RunFolder(tmp_path / "file" / "run").create(CONFIG, {})


@pytest.mark.parametrize(
    "text",
    [
        "",
        "3",
        "- a",
        "steps: 3",
        "energy: [",
        "energy: 3\nobjective: 4\nsteps: 5",
        "energy: {init_args: [1]}\nobjective: {}\nsteps: 1",
        "\x00",
    ],
)
def test_a_broken_config_is_bad_input(tmp_path, text):
    (tmp_path / "config.yaml").write_text(text)
    with pytest.raises(InputError, match=r"config\.yaml"):
        RunFolder(tmp_path).read_config()


def test_a_config_that_is_no_text_is_bad_input(tmp_path):
    (tmp_path / "config.yaml").write_bytes(b"\xff\xfe\x00\xd8")
    with pytest.raises(InputError, match="cannot read"):
        RunFolder(tmp_path).read_config()


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"kind": "vector"}', "{"])
def test_a_broken_description_of_the_data_is_bad_input(tmp_path, text):
    (tmp_path / "data.json").write_text(text)
    with pytest.raises(InputError, match=r"data\.json"):
        RunFolder(tmp_path).read_data_description()


def test_only_folders_named_by_a_number_are_checkpoints(tmp_path):
    for name in ("00000005", "²", "5a", ".00000006.part"):
        (tmp_path / "checkpoints" / name).mkdir(parents=True)
    assert RunFolder(tmp_path).checkpoint_steps() == [5]
