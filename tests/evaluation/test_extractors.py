import dataclasses

import pytest
import torch

from adance.data import load_data
from adance.errors import InputError
from adance.evaluation import inception
from adance.evaluation.classifier import Classifier, make_network
from adance.evaluation.extractor import classify, extract
from adance.evaluation.find_extractor import find_extractor
from adance.evaluation.reference import load_reference


def images(n, generator, channels=1):
    return 2 * torch.rand(n, channels, 8, 8, generator=generator) - 1


@pytest.fixture
def inception_file(stand_in, cache):
    """The stand-in, where torch's hub cache would hold the real file."""
    path = cache / "torch" / "hub" / "checkpoints" / "inception-2015-12-05.pt"
    path.parent.mkdir(parents=True, exist_ok=True)
    stand_in.save(str(path))
    yield path
    path.unlink()


def test_inception_is_called_as_its_file_requires(inception_file, digits, generator):
    found = find_extractor("inception", digits)
    x = images(5, generator)
    assert extract(found, x).shape == (5, 2048)
    log_p = classify(found, x)
    assert log_p.shape == (5, 1008)
    assert log_p.exp().sum(1) == pytest.approx(torch.ones(5).numpy(), abs=1e-4)
    assert found.distance_name == "FID"


def test_only_inceptions_distance_is_called_fid(stand_in, digits, tmp_path):
    path = tmp_path / "mine.pt"
    torch.jit.script(torch.nn.Flatten()).save(str(path))
    for features, name in ((None, "classifier"), ("pixels", "pixels"), (str(path), "mine")):
        found = find_extractor(features, digits)
        assert found.distance_name == f"FD-{name} (Fréchet distance, {name} features)"
    assert find_extractor(str(path), digits, name="Lite0").name == "Lite0"
    with pytest.raises(InputError, match="taken by other features"):
        find_extractor(str(path), digits, name="FID")


def test_inception_is_downloaded_once_to_the_hub_cache(stand_in, cache, digits, monkeypatch):
    fetched = []

    def fetch(url, path):
        fetched.append(url)
        stand_in.save(path)

    monkeypatch.setattr(torch.hub, "download_url_to_file", fetch)
    for _ in range(2):
        find_extractor("inception", digits)
    assert fetched == [inception.INCEPTION_URL]
    (cache / "torch" / "hub" / "checkpoints" / "inception-2015-12-05.pt").unlink()


def test_a_failed_download_says_where_to_copy_the_file(digits, monkeypatch):
    def fail(url, path):
        raise OSError("no network")

    monkeypatch.setattr(torch.hub, "download_url_to_file", fail)
    with pytest.raises(InputError, match=r"cannot download .*no network.*copy the file to .*inception-2015-12-05.pt"):
        find_extractor("inception", digits)


def test_grayscale_images_are_repeated_if_a_file_needs_three_channels(digits, tmp_path, generator):
    path = tmp_path / "color.pt"
    net = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.Flatten())
    torch.jit.script(net).save(str(path))
    x = images(3, generator)
    assert torch.allclose(find_extractor(str(path), digits).features(x), net(x.repeat(1, 3, 1, 1)))


def test_files_that_give_no_features_are_refused(digits, tmp_path):
    broken, odd = tmp_path / "broken.pt", tmp_path / "odd.pt"
    broken.write_bytes(b"no script")
    torch.jit.script(torch.nn.Identity()).save(str(odd))
    for path, message in (
        (broken, "not a readable TorchScript file"),
        (odd, "one tensor"),
        (tmp_path / "none.pt", "no such file"),
    ):
        with pytest.raises(InputError, match=message):
            find_extractor(str(path), digits)


def test_the_classifier_knows_digits_and_is_trained_once(digits, monkeypatch):
    first = Classifier(digits)
    assert first.accuracy > 0.95
    monkeypatch.setattr("adance.evaluation.classifier._train", None)
    again = Classifier(digits)
    x = digits.batch(torch.arange(50), "test")
    assert torch.equal(again.features(x), first.features(x))
    assert first.features(x).shape == (50, 32)


def test_the_classifier_is_kept_by_content(digits):
    other = dataclasses.replace(digits, train_labels=digits.train_labels.flip(0))
    assert Classifier(digits).key != Classifier(other).key


def test_the_classifier_takes_labels_that_are_not_counted_from_zero(digits):
    odd = dataclasses.replace(digits, train_labels=digits.train_labels * 7 - 3, test_labels=digits.test_labels * 7 - 3)
    found = Classifier(odd)
    assert found.classes == [7 * k - 3 for k in range(10)]
    assert found.accuracy > 0.95


def test_large_images_get_convolutions():
    net = make_network((3, 32, 32), 10)
    assert net[0](torch.zeros(2, 3, 32, 32)).shape == (2, 64)
    assert net(torch.zeros(2, 3, 32, 32)).shape == (2, 10)


def test_data_without_labels_have_pixels():
    assert find_extractor(None, load_data("8gaussians")).name == "pixels"
    with pytest.raises(InputError, match="has no labels"):
        find_extractor("classifier", load_data("8gaussians"))


def test_a_reference_is_read_from_the_cache(digits, monkeypatch):
    found = Classifier(digits)
    first = load_reference(found, digits, "test")
    monkeypatch.setattr("adance.evaluation.reference._features", None)
    again = load_reference(found, digits, "test")
    assert torch.equal(first.covariance, again.covariance)
    assert torch.equal(first.rows, again.rows)
    assert first.n == again.n == 397


def test_a_corrupt_cache_is_replaced(digits, cache):
    found = Classifier(digits)
    first = load_reference(found, digits, "test")
    for path in (cache / "adance").rglob("*.safetensors"):
        path.write_bytes(b"broken")
    assert torch.equal(load_reference(Classifier(digits), digits, "test").mean, first.mean)


def test_features_that_are_not_finite_are_an_error(digits):
    x = digits.batch(torch.arange(5))
    x[3] = torch.nan
    with pytest.raises(InputError, match="event 3"):
        extract(find_extractor("pixels", digits), x)
