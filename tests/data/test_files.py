import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from adance.data import ImageScale, Standardize, load_data
from adance.errors import InputError

R = np.random.default_rng(0)
BYTES = R.integers(0, 256, (20, 6, 5), dtype=np.uint8)


def refused(path, *words, **options):
    """The one-line message of the InputError that loading raises; it holds all the words."""
    with pytest.raises(InputError) as caught:
        load_data(path, **options)
    message = str(caught.value)
    assert "\n" not in message
    for word in (str(path), *words):
        assert word in message
    return message


def attempt(path):
    """The data set, or None and the message of its refusal."""
    try:
        return load_data(path), ""
    except InputError as error:
        return None, str(error)


@pytest.fixture
def saved(tmp_path):
    def save(*array, **arrays):
        path = tmp_path / ("a.npy" if array else "a.npz")
        np.save(path, array[0]) if array else np.savez(path, **arrays)
        return path

    return save


def test_mnist_layout(saved):
    path = saved(x_train=BYTES, y_train=np.arange(20), x_test=BYTES[:4], y_test=np.arange(4))
    data = load_data(path)
    assert (data.kind, data.event_shape, len(data.train), len(data.test)) == ("image", (1, 6, 5), 20, 4)
    assert data.train.dtype == torch.uint8
    assert data.transform == ImageScale(0, 255, 256, 30)
    assert torch.equal(data.train_labels, torch.arange(20))
    assert torch.equal(data.test_labels, torch.arange(4))
    x = data.batch(torch.tensor([3, 1]))
    torch.testing.assert_close(x[0, 0], torch.from_numpy(BYTES[3]) / 127.5 - 1)


def test_cifar_layout_is_channels_last(saved):
    array = R.integers(0, 256, (10, 8, 7, 3), dtype=np.uint8)
    data = load_data(saved(x_train=array, x_test=array))
    assert data.event_shape == (3, 8, 7)
    assert torch.equal(data.train, torch.from_numpy(array).permute(0, 3, 1, 2))


def test_channels_first(saved):
    array = R.random((10, 3, 8, 7))
    data = load_data(saved(x=array, y=np.array(list("abcabcabca"))))
    assert data.event_shape == (3, 8, 7)
    assert data.transform == ImageScale(0, 1, None, 168)
    assert data.train_labels.max() == 2
    assert len(data.train) == 9
    assert len(data.test) == 1


def test_signed_floats_and_booleans(saved):
    assert load_data(saved(BYTES / 127.5 - 1)).transform == ImageScale(-1, 1, None, 30)
    data = load_data(saved(BYTES > 127))
    assert data.transform == ImageScale(0, 1, 2, 30)
    assert data.batch(torch.arange(5)).unique().tolist() == [-1, 1]


def test_vectors(saved):
    array = R.normal(5, 2, (50, 3))
    data = load_data(saved(whatever=array), held_out=0.2, seed=3)
    assert (data.kind, data.event_shape, len(data.train), len(data.test)) == ("vector", (3,), 40, 10)
    assert data.transform == Standardize.fit(data.train)
    torch.testing.assert_close(data.batch(torch.arange(40)).mean(0), torch.zeros(3), atol=1e-6, rtol=0)
    rows = torch.cat([data.train, data.test]).numpy()
    assert np.array_equal(rows[np.lexsort(rows.T)], array[np.lexsort(array.T)])
    assert torch.equal(load_data(saved(whatever=array), held_out=0.2, seed=3).train, data.train)
    assert not torch.equal(load_data(saved(whatever=array), held_out=0.2, seed=4).train, data.train)


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (np.array([["a", {}]], dtype=object), ["object"]),
        (np.array([["a", "b"]]), ["<U1", "numeric"]),
        (np.ones((3, 2), complex), ["complex128", "numeric"]),
        (np.ones(5), ["(5,)", "1 axes"]),
        (np.ones((2, 1, 2, 2, 2)), ["5 axes"]),
        (np.ones((0, 4)), ["(0, 4)", "empty"]),
        (np.ones((1, 4)), ["1 training row", "at least 2"]),
        (np.array([[1.0, 2], [np.nan, 1]]), ["row 1", "nan", "finite"]),
        (np.array([[1.0, 2], [1, -np.inf]]), ["row 1", "-inf"]),
        (np.array([[1.0, 1e300], [1, 1]]), ["row 0", "1e+300"]),
        (np.full((3, 4, 4), np.nan), ["row 0", "nan"]),
        (np.full((3, 4, 4), 7.5), ["[7.5, 7.5]", "[0, 1] or [-1, 1]"]),
        (np.full((3, 4, 4), -2), ["-2..-2", "0..255"]),
        (np.full((3, 4, 4), 256), ["256..256", "0..255"]),
        (BYTES // 255, ["0 and 1", "255"]),
        (np.ones((4, 3, 8, 3)), ["ambiguous", "C=3, H=8, W=3", "H=3, W=8, C=3"]),
        (np.ones((4, 8, 8, 2)), ["neither", "C=8, H=8, W=2", "H=8, W=8, C=2"]),
    ],
)
def test_bad_array(saved, array, words):
    refused(saved(array), *words)


def test_bad_keys(saved):
    refused(saved(images=BYTES, more=BYTES), "'images', 'more'", "x_train")
    refused(saved(x_test=BYTES, y_test=np.arange(20)), "'x_test'", "x_train")
    refused(saved(x=BYTES, y=np.arange(3)), "['y']", "(3,)", "(20,)")
    refused(saved(x=BYTES, y=np.full(20, 0.5)), "['y']", "0.5", "row 0")
    refused(saved(x_train=BYTES, x_test=BYTES[:, 1:]), "(1, 6, 5)", "(1, 5, 5)")
    refused(saved(x_train=BYTES, x_test=BYTES / 255), "uint8", "float32")
    refused(saved(x_train=BYTES, x_test=np.ones((0, 6, 5))), "['x_test']", "empty")
    refused(saved(x=np.array([None])), "['x']", "object")


def test_far_test_row(saved):
    train = np.array([[0.0], [1e-200]])
    refused(saved(x_train=train, x_test=np.array([[0.0], [1.0]])), "row 1", "not finite")


def test_bad_options(saved):
    path = saved(R.normal(size=(5, 2)))
    for fraction in (0, 1, -1, 2, float("nan")):
        with pytest.raises(InputError, match="held_out"):
            load_data(path, held_out=fraction)
    refused(path, "image_size", image_size=8)


def test_broken_and_pickled_files(tmp_path):
    for content in (b"", b"PK\x03\x04junk", b"\x93NUMPY\x01\x00", b"\x80\x04K\x01."):
        for suffix in (".npz", ".npy"):
            path = tmp_path / f"broken{suffix}"
            path.write_bytes(content)
            refused(path)


ANY_DTYPE = st.one_of(
    hnp.boolean_dtypes(), hnp.integer_dtypes(endianness="?"), hnp.unsigned_integer_dtypes(), hnp.floating_dtypes(),
    hnp.complex_number_dtypes(), hnp.unicode_string_dtypes(max_len=3), hnp.datetime64_dtypes(),
)  # fmt: skip
ANY_ARRAY = hnp.arrays(ANY_DTYPE, hnp.array_shapes(min_dims=0, max_dims=5, min_side=0, max_side=4))
FUZZ = settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.mark.filterwarnings("ignore::UserWarning")
@FUZZ
@given(
    st.dictionaries(st.sampled_from(["x", "y", "x_train", "x_test", "y_train", "y_test", "z"]), ANY_ARRAY, max_size=4)
)
def test_any_arrays_load_or_are_refused_in_one_line(tmp_path, arrays):
    path = tmp_path / "fuzz.npz"
    np.savez(path, **arrays)
    data, message = attempt(path)
    assert "\n" not in message
    if data is not None:
        x = data.batch(torch.arange(len(data.train)))
        assert x.shape == data.train.shape
        assert x.isfinite().all()
        assert data.batch(torch.arange(len(data.test)), "test").isfinite().all()


@FUZZ
@given(st.data())
def test_any_damage_is_refused_in_one_line(tmp_path, data):
    path = tmp_path / "fuzz.npy"
    np.save(path, BYTES)
    content = bytearray(path.read_bytes())
    for place in data.draw(st.lists(st.integers(0, 139), max_size=4)):
        content[place] = data.draw(st.integers(0, 255))
    path.write_bytes(content[: data.draw(st.integers(0, len(content)))])
    assert "\n" not in attempt(path)[1]


def test_x_goes_with_x_test_and_what_is_not_used_is_named(saved):
    x, y = R.normal(size=(9, 2)), np.arange(9)
    data = load_data(saved(x=x[:6], y=y[:6], x_test=x[6:], y_test=y[6:]))
    assert (len(data.train), len(data.test)) == (6, 3)
    np.testing.assert_allclose(data.transform.to_data(data.batch(torch.arange(3), "test")), x[6:], atol=1e-6)
    assert data.train_labels.tolist() == y[:6].tolist()
    assert data.test_labels.tolist() == y[6:].tolist()
    with pytest.warns(UserWarning, match=r"a\.npz: not used: 'x', 'ids'$"):
        load_data(saved(x_train=x, x=x[:3], ids=y))
