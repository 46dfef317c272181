"""A step checks its arguments in its first lines, and refuses them in clear words."""

import inspect
import re
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
import torch

import mha
from mha import nn
from tests.samples import nothing_modified

EYE, COLUMN = np.eye(2), np.ones((2, 1))
HEADS = dict.fromkeys(("W_Q", "W_K", "W_V", "W_O"), EYE)
LAYER = HEADS | {"W_1": EYE, "W_2": EYE}
REQUIRED = dict.fromkeys(("Q", "K", "V", "S", "x", "X", "W"), EYE) | LAYER
REQUIRED |= dict(heads=EYE[None], lengths=[2, 1], n=2, n_q=2, d_model=2, n_heads=1)
REQUIRED |= dict(weights=LAYER, layers=[LAYER], b_1=None, b_2=None)
BY_PLACE = dict.fromkeys(("n_k", "max_length", "mask", "b", "gain", "bias"))
BY_PLACE |= dict(axis=-1, eps=1e-5, activation="relu")
BY_NAME = dict.fromkeys(
    ("X_k", "X_v", "b_Q", "b_K", "b_V", "b_O", "scale", "final_norm")
)
BY_NAME |= dict(is_causal=False, return_weights=False, norm_first=False, block_size=512)
STEPS = [name for name in mha.__all__ if name != "source"]


def parameters_of(step):
    return inspect.signature(getattr(mha, step)).parameters


def call(step, **changes):
    given = {name: REQUIRED[name] for name in parameters_of(step) if name in REQUIRED}
    return getattr(mha, step)(**given | changes)


# What a call may look like


@pytest.mark.parametrize("step", STEPS)
def test_every_default_is_what_the_tables_say(step):
    """A changed default changes what every caller gets; most options have names."""
    parameters = parameters_of(step)
    for name, parameter in parameters.items():
        if parameter.default is parameter.empty:
            assert name in REQUIRED, f"give {name} of {step} a value in REQUIRED above"
            continue
        by_name = parameter.kind is parameter.KEYWORD_ONLY
        of_layers = step.startswith("encoder") and name in ("eps", "activation")
        assert by_name == (name in BY_NAME or of_layers)
        expected = (BY_PLACE | BY_NAME)[name]
        assert parameter.default == expected
        assert type(parameter.default) is type(expected)
    by_place = [REQUIRED[n] for n, p in parameters.items() if p.default is p.empty]
    assert np.all(getattr(mha, step)(*by_place) == call(step))


@pytest.mark.parametrize(
    ("args", "options", "words"),
    [
        ((), {}, "missing 1 required positional argument: 'x'"),
        ((EYE,), {"dim": 0}, "got an unexpected keyword argument 'dim'"),
        ((EYE, -1, 0), {}, "takes from 1 to 2 positional arguments but 3 were given"),
        ((EYE,), {"x": EYE}, "got multiple values for argument 'x'"),
    ],
)
def test_what_does_not_fit_the_signature_is_refused_in_the_name_of_the_step(
    args, options, words
):
    with pytest.raises(TypeError, match=rf"^softmax\(\) {words}$"):
        mha.softmax(*args, **options)


# One dtype

FLOATS = {
    "dot_product_scores": "Q K",
    "cosine_similarity": "Q K",
    "softmax": "x",
    "masked_softmax": "S",
    "scaled_dot_product_attention": "Q K V",
    "chunked_attention": "Q K V",
    "linear": "x W b",
    "multi_head_attention": "X X_k X_v W_Q W_K W_V W_O b_Q b_K b_V b_O",
    "layer_norm": "x gain bias",
    "feed_forward": "x W_1 b_1 W_2 b_2",
}


def array_for(step, name, dtype):
    vector = name[0] == "b" or name == "gain"
    return np.ones(2, dtype) if vector else EYE.astype(dtype)


@pytest.mark.parametrize("step", FLOATS)
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "longdouble"])
def test_the_dtype_is_kept_and_one_wider_argument_widens_the_result(step, dtype):
    given = {name: array_for(step, name, dtype) for name in FLOATS[step].split()}
    assert call(step, **given).dtype == np.dtype(dtype)
    if "mask" in parameters_of(step):  # and a mask has no say
        for mask in (EYE > 0, EYE, EYE.astype(np.float16)):
            assert call(step, **given, mask=mask).dtype == np.dtype(dtype)
    wider = np.result_type(dtype, np.float64)
    for name in given if len(given) > 1 else ():
        mixed = given | {name: array_for(step, name, np.float64)}
        assert call(step, **mixed).dtype == wider
        assert call(step, **given | {name: given[name].tolist()}).dtype == wider


def test_lists_and_integers_give_float64_and_scales_do_not_widen():
    assert call("softmax", x=[[True, False]]).dtype == np.float64
    assert call("linear", x=[[1, 2]], W=[[3], [4]]).tolist() == [[11]]
    Q = EYE.astype(np.float32)
    single = dict.fromkeys(LAYER, Q)
    assert call("encoder_layer", X=Q, weights=single).dtype == np.float32
    listed = single | {"W_1": [[1, 0], [0, 1]]}
    Y = call("encoder_layer", X=Q, weights=listed)  # all of it in float64
    np.testing.assert_array_equal(Y, call("encoder_layer"), strict=True)
    for scale in (2, np.float64(2), np.float32(2), Fraction(2)):
        Y = mha.scaled_dot_product_attention(Q, Q, Q, scale=scale)
        assert Y.dtype == np.float32
        assert (Y == mha.scaled_dot_product_attention(Q * 2, Q, Q, scale=1.0)).all()


@pytest.mark.parametrize("d_k", [0, 1, 16])
def test_the_scale_is_one_over_the_root_of_d_k_and_does_not_widen(d_k):
    """Ones score √d_k with ones and 0 with zeros; for d_k = 0 any factor will do."""
    Q, K = np.ones((1, d_k), np.float32), np.eye(2, 1, dtype=np.float32)
    Y = mha.scaled_dot_product_attention(Q, K * np.ones_like(Q), K)
    assert Y.dtype == np.float32
    np.testing.assert_allclose(Y, 1 / (1 + np.exp(-np.sqrt(d_k))), rtol=1e-6)
    K = torch.from_numpy(K)
    theirs = nn.scaled_dot_product_attention(
        torch.ones(1, d_k), K * torch.ones(1, d_k), K
    )
    assert theirs.dtype == torch.float32
    np.testing.assert_allclose(theirs, Y, rtol=1e-6)


def test_a_mask_beyond_the_range_of_float32_hides_without_a_warning(recwarn):
    Q, bias = EYE.astype(np.float32), np.array([[-1e300, 0], [-1e300, 0]])
    with nothing_modified(Q, bias):
        _, A = mha.scaled_dot_product_attention(Q, Q, Q, bias, return_weights=True)
    assert A.tolist() == [[0, 1], [0, 1]] and not recwarn


# Arrays of other libraries, by NumPy's own protocol


class Foreign(np.lib.mixins.NDArrayOperatorsMixin):
    """An array of another library; it computes by NEP 13 and 18, and is no ndarray."""

    def __init__(self, array, dtype=None):
        self.array, self.shape, self.ndim = array, array.shape, array.ndim
        self.dtype = dtype or array.dtype

    def wrap(self, result):
        unknown = None if isinstance(self.dtype, np.dtype) else self.dtype
        return Foreign(result, unknown) if isinstance(result, np.ndarray) else result

    def __array__(self, *args, **options):
        raise AssertionError("a step made an ndarray of it")

    def __array_ufunc__(self, ufunc, method, *args, **options):
        return self.wrap(ufunc(*map(plain, args), **options))

    def __array_function__(self, function, types, args, options):
        return self.wrap(function(*map(plain, args), **options))

    def __getitem__(self, key):
        return self.wrap(self.array[key])

    def reshape(self, *shape):
        return self.wrap(self.array.reshape(*shape))

    def swapaxes(self, *axes):
        return self.wrap(self.array.swapaxes(*axes))

    def astype(self, dtype):
        assert isinstance(self.dtype, np.dtype) and isinstance(dtype, np.dtype)
        return Foreign(self.array.astype(dtype))


def plain(x):
    return x.array if isinstance(x, Foreign) else x


def foreign(x, dtype=None):
    if isinstance(x, dict):
        return {name: foreign(part, dtype) for name, part in x.items()}
    if isinstance(x, list):
        return [foreign(part, dtype) for part in x]
    return Foreign(x, dtype) if isinstance(x, np.ndarray) and x.dtype.kind == "f" else x


GIVEN = {
    step: {name: REQUIRED[name] for name in parameters_of(step) if name in REQUIRED}
    for step in STEPS
    if step != "chunked_attention"  # it writes into an array of its own
}
CALLS = {  # of those that take arrays
    step: arrays
    for step, arrays in GIVEN.items()
    if any(isinstance(x, np.ndarray) for x in arrays.values())
}


@pytest.mark.parametrize("dtype", ["float16", "float64", "one of no NumPy"])
@pytest.mark.parametrize("step", CALLS)
def test_arrays_of_another_library_are_computed_with_by_numpys_protocol(step, dtype):
    arrays = CALLS[step]
    known = not dtype.startswith("one")
    if known:
        arrays = as_dtype(dtype, arrays)
    Y = call(step, **foreign(arrays, None if known else dtype))
    assert isinstance(Y, Foreign) and Y.dtype == dtype
    np.testing.assert_array_equal(Y.array, call(step, **arrays))


def as_dtype(dtype, x):
    if isinstance(x, dict):
        return {name: as_dtype(dtype, part) for name, part in x.items()}
    if isinstance(x, list):
        return [as_dtype(dtype, part) for part in x]
    return x.astype(dtype) if isinstance(x, np.ndarray) else x


@pytest.mark.parametrize("dtype", [None, "one of no NumPy"])
def test_gelu_asks_another_library_for_its_own_error_function(dtype):
    x, W = Foreign(EYE, dtype), Foreign(EYE, dtype)
    y = mha.feed_forward(x, W, None, W, None, "gelu")
    expected = mha.feed_forward(EYE, EYE, None, EYE, None, "gelu")
    assert y.array.astype(float).tolist() == expected.tolist()


def test_masks_of_another_library_are_masks_too():
    for mask in (EYE > 0, np.log(EYE + 0.5)):
        A = mha.masked_softmax(Foreign(EYE), Foreign(mask))
        np.testing.assert_array_equal(A.array, mha.masked_softmax(EYE, mask))
    with pytest.raises(ValueError, match=r"mask of shape \(3, 3\) does not broadcast"):
        mha.masked_softmax(Foreign(EYE), Foreign(np.eye(3)))
    with pytest.raises(ValueError, match="Q has 2 columns and K has 3 columns"):
        mha.dot_product_scores(Foreign(EYE), Foreign(np.eye(3)))


# Refusals

ARRAYS = [
    (step, name)
    for step in STEPS
    for name in parameters_of(step)
    if name in "Q K V S x X X_k X_v W b heads gain bias".split()
    or name[:2] in ("X_", "W_", "b_")
]


@pytest.mark.parametrize(("step", "name"), ARRAYS)
def test_every_array_that_is_none_is_named(step, name):
    for x, error, words in [
        (torch.eye(2), TypeError, r"is a torch\.Tensor; .*mha\.nn holds"),
        (torch.nn.Parameter(torch.eye(2)), TypeError, r"is a torch\.Parameter; "),
        (EYE + 0j, TypeError, "must hold real numbers, got dtype complex128"),
        ([["a"]], TypeError, "must hold real numbers, got dtype <U1"),
        ([[None, 1.0]], TypeError, "must hold real numbers, got dtype object"),
        (np.zeros((2, 2), "M8[D]"), TypeError, "must hold real .* datetime64"),
        ([[1.0, 2.0], [3.0]], ValueError, "must be rectangular: rows differ"),
        (3.0, ValueError, r"must have shape \(.*\), got \(\)"),
    ]:
        with pytest.raises(error, match=f"^{name} {words}"):
            call(step, **{name: x})


@pytest.mark.parametrize(("step", "name"), ARRAYS)
def test_an_array_of_numpy_ma_is_refused_since_its_mask_would_be_lost(step, name):
    x = np.ma.array(EYE, mask=EYE > 0)
    with pytest.raises(TypeError) as refusal:
        call(step, **{name: x})
    assert str(refusal.value) == (
        f"{name} is a numpy.ma array, and its own mask would be lost; write the two "
        f"apart: {name}.data, and mask=~{name}.mask where True = may attend"
    )


def test_what_the_refusal_of_numpy_ma_says_is_what_was_meant():
    x = np.ma.array([1.0, 2.0, 3.0], mask=[False, True, False])
    weights = mha.masked_softmax(x.data, mask=~x.mask)
    np.testing.assert_allclose(weights, mha.masked_softmax([1, -np.inf, 3]))
    with pytest.raises(TypeError, match=r"mask=~mask\.mask"):
        mha.masked_softmax(x.data, mask=np.ma.array(~x.mask))


# The shapes of each step. Axes of the same name must agree, and each gets a prime.
OF_LAYER = """W_Q (d, d_k), W_K (d, d_k), W_V (d, d_v), W_O (d_v, d), W_1 (d, d_ff),
    W_2 (d_ff, d), b_Q (d_k), b_K (d_k), b_V (d_v), b_O (d), b_1 (d_ff), b_2 (d),
    gain_1 (d), bias_1 (d), gain_2 (d), bias_2 (d)"""
AXES = {
    "dot_product_scores": "Q (n_q, d), K (n_k, d)",
    "cosine_similarity": "Q (n_q, d), K (n_k, d)",
    "scaled_dot_product_attention": "Q (n_q, d), K (n_k, d), V (n_k, d_v)",
    "chunked_attention": "Q (n_q, d), K (n_k, d), V (n_k, d_v)",
    "linear": "x (d), W (d, d_out), b (d_out)",
    "multi_head_attention": """X (n_q, d), X_k (n_k, d_of_keys), X_v (n_k, d_of_values),
        W_Q (d, d_k), W_K (d_of_keys, d_k), W_V (d_of_values, d_v), W_O (d_v, d_out),
        b_Q (d_k), b_K (d_k), b_V (d_v), b_O (d_out)""",
    "layer_norm": "x (d), gain (d), bias (d)",
    "feed_forward": """x (n, d), W_1 (d, d_ff), b_1 (d_ff), W_2 (d_ff, d_out),
        b_2 (d_out)""",
    "encoder_layer": f"X (n, d), {OF_LAYER}",
    "encoder": f"X (n, d), {OF_LAYER}",
}
PRIMES = 2, 3, 5, 7, 11, 13, 17, 19


def shapes_of(step):
    """Return the shape of each array, and which arrays have an axis of each name."""
    axes = re.findall(r"(\w+) \(([^)]+)\)", AXES[step])
    axes = {name: symbols.split(", ") for name, symbols in axes}
    known = dict.fromkeys(symbol for some in axes.values() for symbol in some)
    sizes = dict(zip(known, PRIMES, strict=False))
    owners = {x: [name for name in axes if x in axes[name]] for x in known}
    return {name: [sizes[x] for x in axes[name]] for name in axes}, axes, owners


def call_with(step, shapes):
    """Call a step with arrays of ones of these shapes."""
    given = {name: np.ones(shape) for name, shape in shapes.items()}
    if step.startswith("encoder"):
        X = given.pop("X")
        options = {"weights": given} if step == "encoder_layer" else {"layers": [given]}
        return call(step, X=X, **options)
    return call(step, **given)


@pytest.mark.parametrize("step", AXES)
def test_every_axis_that_does_not_fit_is_told_with_a_name_and_both_sizes(step):
    shapes, axes, owners = shapes_of(step)
    call_with(step, shapes)
    for name, at in [(x, i) for x, shape in shapes.items() for i in range(len(shape))]:
        sharing = owners[axes[name][at]]
        if len(sharing) < 2:
            continue
        size, wrong = shapes[name][at], [*shapes[name]]
        wrong[at] += 100
        with pytest.raises(ValueError) as refusal:
            call_with(step, shapes | {name: wrong})
        said = str(refusal.value)
        assert re.search(rf"\b{size}\b", said) and re.search(rf"\b{size + 100}\b", said)
        assert any(re.search(rf"\b{other}\b", said) for other in sharing), said


@pytest.mark.parametrize("step", AXES)
def test_every_array_with_an_axis_too_few_or_too_many_is_told_its_shape(step):
    shapes, _, _ = shapes_of(step)
    for name, shape in shapes.items():
        more_may_lead = name in ("Q", "K", "V", "x", "X", "X_k", "X_v")
        for wrong in [shape[1:]] if more_may_lead else [shape[1:], [1, *shape]]:
            got = re.escape(str(tuple(wrong)))
            with pytest.raises(
                ValueError, match=rf"{name}\S* must have .*, got {got}$"
            ):
                call_with(step, shapes | {name: wrong})


INTEGER, FINITE = "must be an integer, got", "must be finite, got"
LAST = [  # of every step that takes it
    ("mask", EYE.astype(int), TypeError, r"mask must be bool \(True = .* int64; w"),
    ("mask", [["a"]], TypeError, "mask must be bool .* got dtype <U1"),
    ("mask", torch.eye(2), TypeError, "mask is a torch.Tensor"),
    ("mask", [[True], [True, False]], ValueError, "mask must be rectangular"),
    ("mask", np.eye(3) > 0, ValueError, r"\(3, 3\) does not broadcast .*2, 2\)$"),
    ("mask", EYE * np.nan, ValueError, "mask must hold finite numbers or -inf"),
    ("mask", [[0, np.inf]], ValueError, "mask must hold finite numbers or -inf"),
    ("axis", 2, ValueError, r"axis must be an axis of \w+, got 2 for shape \(2, 2"),
    ("axis", -3, ValueError, r"axis must be an axis of \w+, got -3"),
    ("axis", 1.0, TypeError, f"axis {INTEGER} 1.0"),
    ("axis", True, TypeError, f"axis {INTEGER} True"),
    ("axis", None, TypeError, f"axis {INTEGER} None"),
    ("scale", "1", TypeError, "scale must be a number, got '1'"),
    ("scale", True, TypeError, "scale must be a number, got True"),
    ("scale", np.array(0.5), TypeError, "scale must be a number, got"),
    ("scale", np.inf, ValueError, f"scale {FINITE} inf"),
    ("scale", np.nan, ValueError, f"scale {FINITE} nan"),
    ("eps", -1, ValueError, "eps must be at least 0 and finite, got -1"),
    ("eps", np.nan, ValueError, "eps must be at least 0 and finite, got nan"),
    ("eps", np.inf, ValueError, "eps must be at least 0 and finite, got inf"),
    ("eps", "1", TypeError, "eps must be a number, got '1'"),
    ("n_heads", 3, ValueError, r"columns of .* \(2\) must be divisible by n_h"),
    ("n_heads", 0, ValueError, "n_heads must be at least 1, got 0"),
    ("n_heads", "2", TypeError, f"n_heads {INTEGER} '2'"),
    ("activation", "tanh", ValueError, "'relu' or 'gelu', got 'tanh'"),
    ("block_size", 0, ValueError, "block_size must be at least 1, got 0"),
    ("block_size", 1.0, TypeError, f"block_size {INTEGER} 1.0"),
    ("n_q", None, TypeError, f"n_q {INTEGER} None"),
    ("n_q", np.bool_(True), TypeError, f"n_q {INTEGER}"),
    ("n_q", -1, ValueError, "n_q must be at least 0, got -1"),
    ("n_k", 2.0, TypeError, f"n_k {INTEGER} 2.0"),
    ("n", -1, ValueError, "n must be at least 0, got -1"),
    ("d_model", 0, ValueError, "d_model must be at least 1, got 0"),
    ("lengths", [], ValueError, r"shape \(batch,\) and batch >= 1, got \(0,\)"),
    ("lengths", [[1]], ValueError, r"lengths must have shape .* got \(1, 1\)"),
    ("lengths", [1.0], TypeError, "lengths must be integers, got dtype float64"),
    ("lengths", [True], TypeError, "lengths must be integers, got dtype bool"),
    ("lengths", [1, -1], ValueError, "lie in 0 … max_length = 1, got -1"),
    ("lengths", [-2], ValueError, "lie in 0 … max_length = 0, got -2"),
    ("lengths", torch.ones(2), TypeError, "lengths is a torch.Tensor"),
    ("max_length", 1, ValueError, "lie in 0 … max_length = 1, got 2"),
    ("max_length", -1, ValueError, "max_length must be at least 0, got -1"),
    ("max_length", 2.5, TypeError, f"max_length {INTEGER} 2.5"),
    ("weights", [EYE] * 6, TypeError, "weights must be a dict, got list"),
    ("layers", LAYER, TypeError, "layers must be a sequence of dicts, got dict"),
    ("layers", 2, TypeError, "layers must be a sequence of dicts, got int"),
    ("layers", [LAYER, EYE], TypeError, r"layers\[1\] must be a dict, got ndarr"),
    ("final_norm", True, TypeError, r"pair \(gain, bias\) or None, got True"),
    ("final_norm", [EYE] * 3, TypeError, "final_norm must be a pair"),
    ("final_norm", ([1], None), ValueError, r"gain of .* \(2,\), got \(1,\)"),
    ("final_norm", (None, "ab"), TypeError, "the bias of final_norm must hold"),
]  # fmt: skip


@pytest.mark.parametrize("step", STEPS)
def test_every_value_that_is_refused_is_named_with_its_rule(step):
    for name, wrong, error, words in LAST:
        if name in parameters_of(step):
            arrays = [wrong] if type(wrong) is np.ndarray else []
            with nothing_modified(*arrays), pytest.raises(error, match=words):
                call(step, **{name: wrong})


OF_WEIGHTS = [
    ({"W_2": None}, ValueError, "{0} lacks W_2$"),
    ({"W_1": None, "W_K": None}, ValueError, "{0} lacks W_K, W_1$"),
    ({"w_q": EYE}, ValueError, "{0} holds w_q; the names are W_Q, W_K, .*bias_2$"),
    ({"b_1": ["a", "b"]}, TypeError, r"{0}\['b_1'\] must hold real numbers"),
    ({"W_Q": torch.eye(2)}, TypeError, r"{0}\['W_Q'\] is a torch.Tensor"),
]


@pytest.mark.parametrize(("change", "error", "words"), OF_WEIGHTS)
def test_weights_of_a_layer_are_refused_by_the_place_where_they_are(
    change, error, words
):
    with pytest.raises(error, match=words.format("weights")):
        call("encoder_layer", weights=LAYER | change)
    with pytest.raises(error, match=words.format(r"layers\[1\]")):
        call("encoder", layers=[LAYER, LAYER | change])


def test_leading_axes_that_do_not_broadcast_are_told_by_name():
    words = r"leading axes do not broadcast: Q \(2, 1, 2\), K \(3, 1, 2\)$"
    with pytest.raises(ValueError, match=words):
        mha.dot_product_scores(np.ones((2, 1, 2)), np.ones((3, 1, 2)))


@pytest.mark.parametrize("step", ["multi_head_attention", "encoder_layer"])
def test_on_a_batch_a_mask_with_three_axes_is_refused(rng, step):
    """Two sequences with two heads: one mask per sequence would go to the heads."""
    attend = partial(call, step, X=rng.normal(size=(2, 5, 2)), n_heads=2)
    mask = np.tri(5, dtype=bool) & (rng.random((2, 5, 5)) < 0.7) | np.eye(5, dtype=bool)
    with pytest.raises(ValueError) as refusal:
        attend(mask=mask)
    assert str(refusal.value) == (
        "mask of shape (2, 5, 5) has 3 axes, and the scores have 4: (2, 2, 5, 5) = "
        "(..., n_heads, n_q, n_k); write mask[:, None] for one mask per sequence, "
        "mask[None] for one per head"
    )
    X = rng.normal(size=(2, 5, 2))
    per_sequence = attend(X=X, mask=mask[:, None])
    np.testing.assert_allclose(per_sequence[1], attend(X=X[1], mask=mask[1]))
    np.testing.assert_allclose(attend(X=X, mask=mask[:1]), attend(X=X, mask=mask[0]))
    np.testing.assert_allclose(
        attend(X=X[0], mask=mask), attend(X=X, mask=mask[None])[0]
    )
