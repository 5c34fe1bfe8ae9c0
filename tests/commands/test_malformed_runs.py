"""A corpus of malformed files of a run: each is refused in one line that names the file, and changes nothing."""

import json
import struct

import pytest
import torch

from adance.training.checkpoint import load_tensors, save_tensors

CHECKPOINT = "checkpoints/00000006"


def safetensors(header, data=b"", size=None):
    """A file of this header, which may be any JSON or text, and says that it has ``size`` bytes."""
    text = (header if isinstance(header, str) else json.dumps(header)).encode()
    return struct.pack("<Q", len(text) if size is None else size) + text + data


def one(data=b"", **changes):
    """A file of one tensor ``a``, of eight bytes."""
    return safetensors({"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8], **changes}}, data)


WEIGHTS = {
    "nothing": (b"", "cannot read"),
    "seven bytes": (b"\x08\0\0\0\0\0\0", "cannot read"),
    "text": (b"weights, as a text of some length", "cannot read"),
    "a pickle": (b"\x80\x02}q\x00.", "cannot read"),
    "a header of an exabyte": (safetensors("{}", size=2**60), "cannot read"),
    "a header beyond the file": (safetensors("{}", size=2_000), "cannot read"),
    "a header that is cut": (safetensors('{"a": {"dtype"'), "cannot read"),
    "a header that is a list": (safetensors([]), "cannot read"),
    "a header of a hundred thousand brackets": (safetensors('{"a":' + "[" * 100_000), "cannot read"),
    "a tensor without a shape": (safetensors({"a": {"dtype": "F32", "data_offsets": [0, 8]}}), "cannot read"),
    "an unknown type": (one(bytes(8), dtype="F31"), "cannot read"),
    "a negative length": (one(bytes(8), shape=[-2]), "cannot read"),
    "a length that overflows": (one(bytes(8), shape=[2**33, 2**33]), "cannot read"),
    "offsets beyond the file": (one(bytes(8), shape=[2**40], data_offsets=[0, 2**42]), "cannot read"),
    "offsets in reverse": (one(bytes(8), data_offsets=[8, 0]), "cannot read"),
    "more bytes than tensors": (one(bytes(16)), "cannot read"),
    "no tensors": (safetensors({}), "has no spectral normalization, but the MLP does"),
    "one other tensor": (one(bytes(8)), "has no spectral normalization, but the MLP does"),
}


def refused(adance, bytes_under, file, message):
    before = bytes_under()
    answer = adance("train", "--resume", "run", "--steps", "8", "--quiet")
    assert answer.status == 2
    assert file in answer.error
    assert message in answer.error
    assert bytes_under() == before


@pytest.mark.parametrize("name", WEIGHTS)
def test_weights(name, adance, trained_run, bytes_under):
    content, message = WEIGHTS[name]
    (trained_run / CHECKPOINT / "energy.safetensors").write_bytes(content)
    state = json.loads((trained_run / CHECKPOINT / "state.json").read_text())
    old = {key: value for key, value in state.items() if key not in ("checksums", "crc32")}
    (trained_run / CHECKPOINT / "state.json").write_text(json.dumps(old))  # as earlier versions wrote it
    refused(adance, bytes_under, "energy.safetensors", message)


CHANGES = {
    "a renamed tensor": (lambda name, value: {f"{name}x": value}, "does not fit"),
    "a tensor less": (lambda name, value: {}, "does not fit"),
    "a tensor more": (lambda name, value: {name: value, "more": value}, "does not fit"),
    "a shape": (lambda name, value: {name: torch.zeros(3, 3, 3)}, ""),
}


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("file", ["energy", "objective"])
def test_tensors_that_do_not_fit(file, name, adance, trained_run, bytes_under):
    path, (change, message) = trained_run / CHECKPOINT / f"{file}.safetensors", CHANGES[name]
    first, *others = load_tensors(path).items()
    (trained_run / CHECKPOINT / "state.json").write_text('{"step": 6, "seconds": 1.0, "log_normalizer": null}')
    save_tensors({**dict(others), **change(*first)}, path)
    refused(adance, bytes_under, f"{file}.safetensors", message)


JSON = {
    "nothing": b"",
    "half": b'{"step": 6, "sec',
    "a list": b"[]",
    "a number": b"6",
    "null": b"null",
    "Latin-1": '{"größe": 6}'.encode("latin-1"),
    "UTF-16": '{"step": 6}'.encode("utf-16"),
    "a hundred thousand brackets": b"[" * 100_000,
    "a number of ten thousand digits": b'{"step": ' + b"6" * 10_000 + b"}",
    "an empty mapping": b"{}",
}


@pytest.mark.parametrize("name", JSON)
@pytest.mark.parametrize("file", ["data.json", f"{CHECKPOINT}/state.json"])
def test_json(file, name, adance, trained_run, bytes_under):
    (trained_run / file).write_bytes(JSON[name])
    refused(adance, bytes_under, file, "")


YAML = {
    "nothing": b"",
    "a list": b"- 1\n- 2\n",
    "a text": b"hello",
    "two documents": b"steps: 6\n---\nsteps: 7\n",
    "an open bracket": b"energy: [1, 2\n",
    "a tab": b"energy:\n\tclass_path: MLP\n",
    "a key twice": b"steps: 6\nsteps: 7\n",
    "an object of Python": b"steps: !!python/object/apply:os.getcwd []\n",
    "an unknown tag": b"steps: !six 6\n",
    "an unknown alias": b"steps: *six\n",
    "a list in itself": b"energy: &a [*a]\nobjective: {}\nsteps: 6\n",
    "a mapping in itself": b"energy: &a {init_args: *a}\nobjective: {}\nsteps: 6\n",
    "a NUL": b"steps: 6\0\n",
    "Latin-1": "größe: 6\n".encode("latin-1"),
    "a thousand brackets": b"energy: " + b"[" * 1_000,
    "a billion laughs": b"a0: &a0 [ha]\n"
    + b"".join(b"a%d: &a%d [%s]\n" % (i, i, b",".join([b"*a%d" % (i - 1)] * 9)) for i in range(1, 10)),
}


@pytest.mark.parametrize("name", YAML)
def test_yaml(name, adance, trained_run, bytes_under):
    (trained_run / "config.yaml").write_bytes(YAML[name])
    refused(adance, bytes_under, "config.yaml", "")
    before = bytes_under()
    answer = adance("train", "--config", "run/config.yaml", "--out", "new", "--steps", "0", "--quiet")
    if name not in ("nothing", "two documents", "a key twice"):
        assert answer.status == 2
        assert bytes_under() == before
