"""The classes that readers may copy, as printed, against mha and PyTorch.

They are the class of chapter 9, with its variants, and the stack of chapter 11.
"""

import json
from pathlib import Path

import numpy as np
import pytest

import mha

torch = pytest.importorskip("torch")
nn = pytest.importorskip("mha.nn")
BOOK = Path(__file__).parents[2] / "book"
SIZES = ((1, 5, 2, 6), (2, 3, 2, 4), (3, 5, 3, 12), (2, 7, 5, 10), (3, 1, 2, 6))


def run(space, notebook, *ids):
    """Execute cells of a chapter as printed; `space` gets what they define."""
    for cell in json.loads((BOOK / notebook).read_text("utf-8"))["cells"]:
        if cell["id"] in ids:
            exec("".join(cell["source"]), space)


def classes():
    """Return the three classes of chapter 9: the first needs nothing but its cell."""
    space = {}
    run(space, "09_multi_head.ipynb", "multi-head-a62a", "multi-head-var1")
    return [space[name] for name in ("MultiHead", "WithKernel", "OneProjection")]


def loaded(of, d, h, state):
    layer = of(d, h).double()
    if hasattr(layer, "W_QKV"):
        state = {
            "W_O.weight": state["W_O.weight"],
            "W_O.bias": state["W_O.bias"],
            "W_QKV.weight": torch.cat([state[f"W_{x}.weight"] for x in "QKV"]),
            "W_QKV.bias": torch.cat([state[f"W_{x}.bias"] for x in "QKV"]),
        }
    layer.load_state_dict(state)
    return layer


def masks(b, h, n):
    """Yield padding and mask, with rows that see nothing among them."""
    padding = torch.arange(n) < torch.randint(1, n + 1, (b, 1))
    causal = torch.ones(n, n, dtype=torch.bool).tril()
    each = torch.rand(b, h, n, n) < 0.3
    yield from ((None, None), (padding, None), (None, causal), (padding, causal))
    yield from ((padding.flip(-1), causal), (None, each), (padding, each))


every_class = pytest.mark.parametrize("of", classes(), ids=lambda of: of.__name__)


def drawn(d):
    """Return a state with biases, and the same numbers by the names of `mha`."""
    state = {
        f"W_{x}.{part}": torch.randn(*shape, dtype=torch.float64)
        for x in "QKVO"
        for part, shape in (("weight", (d, d)), ("bias", (d,)))
    }
    arrays = {f"W_{x}": state[f"W_{x}.weight"].numpy().T for x in "QKVO"}
    return state, arrays | {f"b_{x}": state[f"W_{x}.bias"].numpy() for x in "QKVO"}


@every_class
@pytest.mark.parametrize(("b", "n", "h", "d"), SIZES)
def test_the_class_gives_the_numbers_of_mha_and_finite_gradients(of, b, n, h, d):
    torch.manual_seed(d)
    state, arrays = drawn(d)
    layer, X = loaded(of, d, h, state), torch.randn(b, n, d, dtype=torch.float64)
    for padding, mask in masks(b, h, n):
        for is_causal in (False, True):
            joined = np.tri(n, dtype=bool) if is_causal else np.ones((b, 1, n, n), bool)
            if padding is not None:
                joined = joined & padding[:, None, None].numpy()
            if mask is not None:
                joined = joined & mask.numpy()
            numpy = mha.multi_head_attention(
                X.numpy(), n_heads=h, mask=joined, **arrays
            )
            asked = X.clone().requires_grad_()
            with torch.autograd.detect_anomaly(check_nan=True):
                Y = layer(asked, padding, mask, is_causal)
                Y.square().sum().backward()
            np.testing.assert_allclose(Y.detach(), numpy, rtol=0, atol=1e-10)
            slopes = [asked.grad, *(p.grad for p in layer.parameters())]
            assert all(slope.isfinite().all() for slope in slopes)


@every_class
def test_the_class_attends_to_other_tokens_with_their_padding(of):
    torch.manual_seed(0)
    state, arrays = drawn(6)
    X, X_k = (torch.randn(2, n, 6, dtype=torch.float64) for n in (5, 7))
    padding = torch.arange(7) < torch.tensor([3, 7])[:, None]
    numpy = mha.multi_head_attention(
        X.numpy(),
        n_heads=3,
        X_k=X_k.numpy(),
        mask=padding[:, None, None].numpy(),
        **arrays,
    )
    Y = loaded(of, 6, 3, state)(X, padding, X_k=X_k)
    np.testing.assert_allclose(Y.detach(), numpy, rtol=0, atol=1e-10)


@every_class
def test_scores_that_fit_into_float16_are_not_lost_on_the_way(of):
    """Before it is divided by √64 one is 102,400, and float16 ends at 65,504."""
    large, one = 40 * torch.eye(64), torch.eye(64)
    state = {f"W_{x}.weight": large if x in "QK" else one for x in "QKVO"}
    state |= {f"W_{x}.bias": torch.zeros(64) for x in "QKVO"}
    X = torch.where(torch.rand(1, 5, 64) < 0.5, -1.0, 1.0)
    layer = loaded(of, 64, 1, state)
    torch.testing.assert_close(layer.half()(X.half()), X.half())


def test_the_kernel_gets_no_mask_where_nothing_or_only_the_future_is_hidden(
    monkeypatch,
):
    """A mask for long texts is as large as the table that the kernel avoids."""
    asked, attention = [], torch.nn.functional.scaled_dot_product_attention

    def seen(*args, **options):
        asked.append((options["attn_mask"], options["is_causal"]))
        return attention(*args, **options)

    monkeypatch.setattr(torch.nn.functional, "scaled_dot_product_attention", seen)
    layer, X = classes()[1](6, 3), torch.randn(2, 5, 6)
    layer(X), layer(X, is_causal=True)
    assert asked == [(None, False), (None, True)]


@every_class
def test_the_class_refuses_what_would_run_silently(of):
    layer, X = of(6, 3), torch.randn(3, 5, 6)
    everywhere = torch.ones(3, 1, 5, dtype=torch.bool)
    with pytest.raises(ValueError, match="mask: bool of "):
        layer(X, mask=everywhere)
    for wide in ((4, 5), (5, 4), (2, 1, 1, 5), (1, 2, 1, 5)):  # would make more scores
        with pytest.raises(ValueError, match="mask: bool of "):
            layer(X[:, :5], mask=torch.ones(wide, dtype=torch.bool))
    with pytest.raises(ValueError, match="mask: bool of "):  # would make more queries
        layer(X[:, :1], mask=torch.ones(5, 5, dtype=torch.bool), X_k=X)
    for padding in (everywhere, everywhere[:, 0, :4], torch.ones(3, 5)):
        with pytest.raises(ValueError, match=r"is_word: bool of shape \(3, 5\), not "):
            layer(X, padding)
    with pytest.raises(ValueError, match="X and X_k: "):
        layer(X[0])
    with pytest.raises(ValueError, match="10 columns do not make 3 equal heads"):
        of(10, 3)


def test_dropout_of_the_class_acts_in_training_only():
    copied, kernel, _ = (of(8, 2, dropout=0.5) for of in classes())
    X = torch.randn(2, 5, 8)
    for layer in (copied, kernel):
        assert not torch.equal(layer(X), layer(X))
        layer.eval()
        assert torch.equal(layer(X), layer(X))


@every_class
def test_the_stack_of_chapter_11_gives_the_numbers_of_mha_and_finite_gradients(of):
    torch.manual_seed(0)
    space = {"MultiHead": of}
    run(space, "11_encoder_layer.ipynb", "encoder-layer-classes")
    packaged = nn.Encoder(3, 10, 5, 14, norm_first=True, final_norm=True).double()
    for parameter in packaged.parameters():
        torch.nn.init.normal_(parameter, std=0.5)  # norms and biases, too
    stack = space["Encoder"](3, 10, 5, 14).double()
    for printed, layer in zip(stack.layers, packaged.layers, strict=True):
        printed.attention = loaded(of, 10, 5, layer.attention.state_dict())
    rest = {k: v for k, v in packaged.state_dict().items() if ".attention." not in k}
    stack.load_state_dict(rest, strict=False)
    X = torch.randn(2, 7, 10, dtype=torch.float64)
    padding = torch.arange(7) < torch.tensor([[3], [0]])  # one sentence is empty
    for hidden in (None, padding):
        for is_causal in (False, True):
            mask = None if hidden is None else hidden[:, None, None]
            Y = stack(X, hidden, is_causal)
            torch.testing.assert_close(Y, packaged(X, mask, is_causal=is_causal))
            stack.zero_grad()
            Y.square().sum().backward()
            assert all(p.grad.isfinite().all() for p in stack.parameters())


def test_dropout_of_the_stack_acts_in_training_only():
    space = {"MultiHead": classes()[0]}
    run(space, "11_encoder_layer.ipynb", "encoder-layer-classes")
    stack, X = space["Encoder"](2, 8, 2, 12, dropout=0.5), torch.randn(2, 5, 8)
    assert not torch.equal(stack(X), stack(X))
    stack.eval()
    assert torch.equal(stack(X), stack(X))
