"""What ``--config`` reads: values keep their types, and what a file cannot rebuild is refused in one line."""

import pytest

OPTIONS = "--data moons --steps 1 --batch_size 16 --device cpu --quiet --out run"


@pytest.mark.parametrize("command", ["train", "sweep --over seed=0"])
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("objective: {class_path: NCE, init_args: null}", "--objective: this config cannot rebuild its objective: "),
        ("energy: {class_path: MLP, init_args: }", "--energy: this config cannot rebuild its energy: "),
        (
            "objective: {class_path: AdaNCE, init_args: {sampler: {class_path: MALA, init_args: null}}}",
            "--objective.sampler: this config cannot rebuild its sampler: ",
        ),
    ],
)
def test_arguments_that_were_not_recorded(text, message, command, adance, tmp_path, bytes_under):
    (tmp_path / "own.yaml").write_text(text)
    before = bytes_under()
    answer = adance(*command.split(), *OPTIONS.split(), "--config", "own.yaml")
    assert answer.status == 2
    assert message in answer.error
    assert "write {} to use the defaults" in answer.error
    assert bytes_under() == before


def test_a_class_without_arguments_uses_its_defaults(adance, tmp_path):
    (tmp_path / "own.yaml").write_text("objective: {class_path: NCE, init_args: {}}")
    assert adance("train", *OPTIONS.split(), "--energy.hidden", "[4]", "--config", "own.yaml").status == 0


@pytest.mark.parametrize("option", ["energy", "objective", "objective.noise"])
def test_null_where_an_object_is_needed(option, adance, tmp_path, bytes_under):
    (tmp_path / "own.yaml").write_text(f"objective: NCE\n{option}: null")
    before = bytes_under()
    for given in (["--config", "own.yaml"], ["--objective=NCE", f"--{option}=null"]):
        answer = adance("train", *OPTIONS.split(), *given)
        assert answer.status == 2
        assert f"--{option}: " in answer.error
        assert bytes_under() == before


def test_null_for_the_default_kernel(adance):
    answer = adance("train", *OPTIONS.split(), "--objective.sampler", "null", "--print_config")
    assert "    sampler: null\n" in answer.out


def test_a_constructor_that_overflows(adance):
    answer = adance("train", "--data", "digits", "--energy", "ConvNet", "--energy.width", ".inf", "--out", "run")
    assert answer.status == 2
    assert "--energy: cannot make adance.ConvNet: " in answer.error
