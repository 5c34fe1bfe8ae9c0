import torch

from adance.randomness import drawing_from, weights_drawn_from


def test_draws_come_from_the_generator_and_the_global_one_stays(generator):
    right = torch.randn(5, generator=torch.Generator().manual_seed(0)), torch.Generator().manual_seed(0)
    torch.randn(5, generator=right[1])
    before = torch.get_rng_state()
    for lent in (drawing_from, weights_drawn_from):
        generator.manual_seed(0)
        with lent(generator):
            found = torch.randn(5)
        assert torch.equal(found, right[0])
        assert torch.equal(torch.randn(3, generator=generator), torch.randn(3, generator=right[1]))
        right[1].manual_seed(0)
        torch.randn(5, generator=right[1])
    assert torch.equal(torch.get_rng_state(), before)


def test_without_a_generator_the_global_one_is_used():
    torch.manual_seed(3)
    right = torch.randn(4)
    torch.manual_seed(3)
    with drawing_from(None):
        assert torch.equal(torch.randn(4), right)


def test_the_global_generator_is_put_back_after_an_error(generator):
    before = torch.get_rng_state()
    try:
        with drawing_from(generator):
            torch.rand(2)
            raise ValueError
    except ValueError:
        pass
    assert torch.equal(torch.get_rng_state(), before)
