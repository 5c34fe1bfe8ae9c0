"""Settings of a sampler that is not named change the one that the library chooses for the data."""

import pytest
import yaml

from adance.sweeps import SweepFolder

OPTIONS = "--energy.hidden [4] --objective.pool 16 --objective.buffer 32 --batch_size 16 --steps 2 --device cpu --quiet"
NAMED = "--objective.sampler Langevin --objective.sampler.noise_std 0.005 --objective.sampler.steps 3"
NAMED += " --objective.sampler.bounds [-1,1]"


def sampler_of(run):
    return yaml.safe_load((run / "config.yaml").read_text())["objective"]["init_args"]["sampler"]


def weights_of(run):
    return (run / "checkpoints" / "00000002" / "energy.safetensors").read_bytes()


@pytest.fixture
def named(adance, tmp_path):
    """A run whose sampler was named, with the arguments of the default and three steps."""
    assert adance("train", *OPTIONS.split(), *NAMED.split(), "--out", "named").status == 0
    return tmp_path / "named"


@pytest.mark.parametrize(
    "objective",
    [
        "",
        "{sampler: {steps: 3}}",
        "{init_args: {sampler: {init_args: {steps: 3}}}}",
        "{class_path: AdaNCE, sampler.steps: 3}",
    ],
)
def test_the_run_is_that_of_the_sampler_named(objective, adance, named, tmp_path):
    (tmp_path / "own.yaml").write_text(f"objective: {objective}" if objective else "seed: 0")
    typed = [] if objective else ["--objective.sampler.steps", "3"]
    assert adance("train", *OPTIONS.split(), *typed, "--config", "own.yaml", "--out", "run").status == 0
    assert weights_of(tmp_path / "run") == weights_of(named)
    assert sampler_of(tmp_path / "run") == sampler_of(named)


def test_the_default_is_that_of_the_data(adance, tmp_path):
    argv = ("--data", "moons", "--objective.sampler.steps=3", "--objective.sampler.step_size=1e-2", "--out", "run")
    assert adance("train", *OPTIONS.split(), *argv).status == 0
    found = sampler_of(tmp_path / "run")
    assert found["class_path"] == "adance.MALA"
    assert (found["init_args"]["steps"], found["init_args"]["step_size"]) == (3, 0.01)
    sample = ("sample", "run", "--n", "2", "--out", "x.npz")
    assert adance(*sample, "--sampler.step_size", "0.1").status == 0
    assert "the default sampler is MALA, which takes steps, step_size" in adance(*sample, "--sampler.stepz", "3").error


def test_a_file_and_options_add_up_in_order(adance, tmp_path):
    (tmp_path / "own.yaml").write_text("objective: {sampler: {steps: 9, step_size: 0.5}}")
    for argv, steps in ((["--objective.sampler.steps=3", "--config", "own.yaml"], 9),
                        (["--config", "own.yaml", "--objective.sampler.steps=3"], 3)):  # fmt: skip
        assert adance("train", *OPTIONS.split(), *argv, "--out", f"run{steps}").status == 0
        found = sampler_of(tmp_path / f"run{steps}")["init_args"]
        assert (found["steps"], found["step_size"]) == (steps, 0.5)


def test_what_is_given_before_a_class_is_kept_if_the_class_has_it(adance, tmp_path):
    before = ("--objective.sampler.steps", "2", "--objective.sampler.noise_std", "0.1", "--objective.sampler", "MALA")
    argv = ["--data", "moons", *before, "--objective.pool", "80", "--objective.buffer", "80", "--out", "run"]
    assert adance("train", *OPTIONS.split(), *argv).status == 0
    assert sampler_of(tmp_path / "run")["init_args"]["steps"] == 2


def test_a_sweep_varies_it(adance, tmp_path):
    answer = adance("sweep", *OPTIONS.split(), "--over", "objective.sampler.steps=2,3", "--out", "sweep")
    assert answer.status == 0, answer.error
    for steps in (2, 3):
        assert sampler_of(tmp_path / "sweep" / f"steps={steps}")["init_args"]["steps"] == steps
    assert [point["objective.sampler.steps"] for point in SweepFolder(tmp_path / "sweep").points()] == ["2", "3"]


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("--objective.sampler.stepz=3", "which takes steps, step_size, noise_std, temperature, bounds"),
        ("--objective.sampler.step_size=-1", "step_size > 0"),
        ("--objective.sampler.steps=many", "sampler: "),
        ("--objective.sampler.steps=2.5", "sampler: steps must be a whole number of at least 0, got 2.5"),
        ("--objective.sampler.steps=true", "sampler: steps must be a whole number of at least 0, got True"),
        ("--objective.sampler.step_size=true", "sampler: step_size must be of type float, got True"),
        ("--objective.sampler.step_size=[1]", "sampler: step_size must be of type float, got [1]"),
        ("--objective.sampler.bounds=[0]", "sampler: bounds must be of type tuple[float, float] | None, got [0]"),
        ("--objective.sampler.temperature=2", "not both"),
        ("--objective=NCE --objective.sampler.steps=3", "'sampler.steps' is not accepted; NCE takes noise, noises"),
    ],
)
def test_what_the_default_refuses(option, message, adance, bytes_under):
    before = bytes_under()
    answer = adance("train", *OPTIONS.split(), *option.split(), "--out", "run")
    assert answer.status == 2
    assert message in answer.error
    assert bytes_under() == before
