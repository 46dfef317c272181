"""A step checks its arguments in its first lines, and refuses them in clear words."""

import inspect
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
            assert name in REQUIRED
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


CALLS = {
    step: {name: REQUIRED[name] for name in parameters_of(step) if name in REQUIRED}
    for step in STEPS
    if step not in ("causal_mask", "padding_mask", "chunked_attention")
    and not step.startswith("sinusoidal")
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


WRONG = {
    "softmax": [
        (
            dict(axis=2),
            ValueError,
            r"axis must be an axis of x, got 2 for shape \(2, 2",
        ),
        (dict(axis=-3), ValueError, "axis must be an axis of x, got -3"),
        (dict(axis=1.0), TypeError, "axis must be an integer, got 1.0"),
        (dict(axis=True), TypeError, "axis must be an integer, got True"),
        (dict(axis=None), TypeError, "axis must be an integer, got None"),
        (dict(x=None), TypeError, "x must hold real numbers, got dtype object"),
    ],
    "dot_product_scores": [
        (dict(K=np.eye(3)), ValueError, "Q has 2 columns and K has 3 columns; they"),
        (dict(K=COLUMN), ValueError, "Q has 2 columns and K has 1 columns"),
        (
            dict(Q=[1, 2]),
            ValueError,
            r"Q must have shape \(..., n_q, d_k\), got \(2,\)",
        ),
        (
            dict(Q=np.ones((2, 1, 2)), K=np.ones((3, 1, 2))),
            ValueError,
            r"leading axes do not broadcast: Q \(2, 1, 2\), K \(3, 1, 2\)$",
        ),
    ],
    "causal_mask": [
        (dict(n_q=None), TypeError, "n_q must be an integer, got None"),
        (dict(n_q=np.bool_(True)), TypeError, "n_q must be an integer, got"),
        (dict(n_q=-1), ValueError, "n_q must be at least 0, got -1"),
        (dict(n_k=2.0), TypeError, "n_k must be an integer, got 2.0"),
        (dict(n_k=-1), ValueError, "n_k must be at least 0, got -1"),
    ],
    "padding_mask": [
        (dict(lengths=[]), ValueError, r"shape \(batch,\) and batch >= 1, got \(0,\)"),
        (dict(lengths=[[1]]), ValueError, r"lengths must have shape .* got \(1, 1\)"),
        (dict(lengths=3), ValueError, r"lengths must have shape \(batch,\).*got \(\)"),
        (dict(lengths=[1.0]), TypeError, "lengths must be integers, got dtype float64"),
        (dict(lengths=[True]), TypeError, "lengths must be integers, got dtype bool"),
        (dict(lengths=[1, -1]), ValueError, "lie in 0 … max_length = 1, got -1"),
        (dict(lengths=[-2]), ValueError, "lie in 0 … max_length = 0, got -2"),
        (dict(lengths=[1, 4, 3], max_length=2), ValueError, "max_length = 2, got 4"),
        (dict(max_length=-1), ValueError, "max_length must be at least 0, got -1"),
        (dict(max_length=2.5), TypeError, "max_length must be an integer, got 2.5"),
        (dict(lengths=torch.ones(2)), TypeError, "lengths is a torch.Tensor"),
    ],
    "masked_softmax": [
        (dict(mask=[[1, 0]]), TypeError, r"mask must be bool \(True = may .* int64; w"),
        (dict(mask=[["a"]]), TypeError, "mask must be bool .* got dtype <U1"),
        (dict(mask=torch.eye(2)), TypeError, "mask is a torch.Tensor"),
        (dict(mask=[[True], [True, False]]), ValueError, "mask must be rectangular"),
        (dict(mask=np.eye(3) > 0), ValueError, r"\(3, 3\) does not .* = \(2, 2\)"),
        (dict(mask=[EYE > 0]), ValueError, r"mask of shape \(1, 2, 2\) does not broad"),
        (dict(mask=EYE * np.nan), ValueError, "must hold finite numbers or -inf, got"),
        (dict(mask=[[0, np.inf]]), ValueError, "a float mask must hold finite numbers"),
        (dict(axis=2), ValueError, "axis must be an axis of S, got 2"),
    ],
    "scaled_dot_product_attention": [
        (dict(V=np.eye(3)), ValueError, "K has 2 rows and V has 3 rows; they must be"),
        (
            dict(V=[[1]]),
            ValueError,
            "K has 2 rows and V has 1 rows; they must be equal",
        ),
        (
            dict(V=[1, 2]),
            ValueError,
            r"V must have shape \(..., n_k, d_v\), got \(2,\)",
        ),
        (
            dict(mask=np.ones((1, 2, 2), bool)),
            ValueError,
            r"\(1, 2, 2\) does not broad",
        ),
        (dict(mask=EYE.astype(int)), TypeError, "mask must be bool"),
        (dict(scale="1"), TypeError, "scale must be a number, got '1'"),
        (dict(scale=True), TypeError, "scale must be a number, got True"),
        (dict(scale=np.array(0.5)), TypeError, "scale must be a number, got"),
        (dict(scale=np.inf), ValueError, "scale must be finite, got inf"),
        (dict(scale=np.nan), ValueError, "scale must be finite, got nan"),
    ],
    "linear": [
        (
            dict(x=[1]),
            ValueError,
            "x has 1 columns and W has 2 rows; they must be equal",
        ),
        (dict(W=EYE[0]), ValueError, r"W must have shape \(d_in, d_out\), got \(2,\)"),
        (dict(W=EYE[None]), ValueError, r"W must have shape \(d_in, d_out\), got \(1,"),
        (dict(b=[1]), ValueError, r"b must have shape \(2,\), got \(1,\)"),
        (dict(b=[[1, 2]]), ValueError, r"b must have shape \(d_out,\), got \(1, 2\)"),
        (dict(W=None), TypeError, "W must hold real numbers"),
    ],
    "split_heads": [
        (
            dict(n_heads=3),
            ValueError,
            r"columns of x \(2\) .* divisible by n_heads \(3",
        ),
        (dict(n_heads=0), ValueError, "n_heads must be at least 1, got 0"),
        (dict(n_heads="2"), TypeError, "n_heads must be an integer, got '2'"),
        (
            dict(x=[1, 2]),
            ValueError,
            r"x must have shape \(..., n, n_heads \* d_head\)",
        ),
    ],
    "merge_heads": [
        (dict(heads=EYE), ValueError, r"\(..., n_heads, n, d_head\), got \(2, 2\)"),
    ],
    "multi_head_attention": [
        (
            dict(n_heads=3),
            ValueError,
            r"columns of W_Q \(2\) must be .* n_heads \(3\)$",
        ),
        (
            dict(n_heads=2, W_V=np.ones((2, 3)), W_O=np.ones((3, 2))),
            ValueError,
            r"columns of W_V \(3\) must be divisible by n_heads \(2\)",
        ),
        (dict(W_K=COLUMN), ValueError, r"^W_Q has 2 columns and W_K has 1 columns"),
        (dict(W_K=np.ones((3, 2))), ValueError, "X has 2 columns and W_K has 3 rows;"),
        (dict(W_V=np.eye(3)), ValueError, "X has 2 columns and W_V has 3 rows; they"),
        (
            dict(X_k=EYE + 1, W_V=np.eye(3)),
            ValueError,
            "X_k has 2 columns and W_V has 3 rows",
        ),
        (dict(X_v=np.ones((2, 3))), ValueError, "X_v has 3 columns and W_V has 2 rows"),
        (dict(W_O=np.eye(3)), ValueError, "W_V has 2 columns and W_O has 3 rows"),
        (dict(X_v=EYE[:1]), ValueError, "X has 2 rows and X_v has 1 rows; they must"),
        (dict(b_Q=[1]), ValueError, r"b_Q must have shape \(2,\), got \(1,\)"),
        (dict(b_O=1.0), ValueError, r"b_O must have shape \(d_out,\), got \(\)"),
        (dict(mask=EYE.astype(int)), TypeError, "mask must be bool"),
        (dict(mask=np.eye(3) > 0), ValueError, r"n_q, n_k\) = \(1, 2, 2\)"),
    ],
    "sinusoidal_positional_encoding": [
        (dict(n=-1), ValueError, "n must be at least 0, got -1"),
        (dict(n=None), TypeError, "n must be an integer, got None"),
        (dict(d_model=0), ValueError, "d_model must be at least 1, got 0"),
    ],
    "layer_norm": [
        (dict(gain=[1]), ValueError, r"gain must have shape \(2,\), got \(1,\)"),
        (dict(bias=[1, 2, 3]), ValueError, r"bias must have shape \(2,\), got \(3,\)"),
        (dict(eps=-1), ValueError, "eps must be at least 0 and finite, got -1"),
        (dict(eps=np.nan), ValueError, "eps must be at least 0 and finite, got nan"),
        (dict(eps=np.inf), ValueError, "eps must be at least 0 and finite, got inf"),
        (dict(eps="1"), TypeError, "eps must be a number, got '1'"),
        (dict(eps=True), TypeError, "eps must be a number, got True"),
    ],
    "feed_forward": [
        (dict(x=np.ones((2, 3))), ValueError, "x has 3 columns and W_1 has 2 rows"),
        (dict(W_2=np.eye(3)), ValueError, "W_1 has 2 columns and W_2 has 3 rows"),
        (dict(b_2=[1]), ValueError, r"b_2 must have shape \(2,\), got \(1,\)"),
        (dict(activation="tanh"), ValueError, "'relu' or 'gelu', got 'tanh'"),
    ],
    "encoder_layer": [
        (dict(weights=[EYE] * 6), TypeError, "weights must be a dict, got list"),
    ],
    "encoder": [
        (dict(layers=LAYER), TypeError, "layers must be a sequence of dicts, got dict"),
        (dict(layers=2), TypeError, "layers must be a sequence of dicts, got int"),
        (
            dict(layers=[LAYER, EYE]),
            TypeError,
            r"layers\[1\] must be a dict, got ndarr",
        ),
        (dict(final_norm=True), TypeError, r"pair \(gain, bias\) or None, got True"),
        (dict(final_norm=[EYE] * 3), TypeError, "final_norm must be a pair"),
        (dict(final_norm=([1], None)), ValueError, r"gain of .* \(2,\), got \(1,\)"),
        (dict(final_norm=(None, "ab")), TypeError, "the bias of final_norm must hold"),
    ],
    "chunked_attention": [
        (dict(block_size=0), ValueError, "block_size must be at least 1, got 0"),
        (dict(block_size=1.0), TypeError, "block_size must be an integer, got 1.0"),
        (dict(V=np.eye(3)), ValueError, "K has 2 rows and V has 3 rows"),
        (dict(scale=np.nan), ValueError, "scale must be finite, got nan"),
    ],
}
OF_LAYERS = [
    (dict(X=np.ones((2, 3))), ValueError, "X has 3 columns and .*W_Q'. has 2 rows"),
    (dict(X=[1, 2]), ValueError, r"X must have shape \(..., n, d_model\), got \(2,\)"),
    (dict(n_heads=3), ValueError, r"W_Q'\] \(2\) must be divisible by n_heads \(3\)"),
    (dict(mask=EYE.astype(int)), TypeError, "mask must be bool .* got dtype int64"),
    (dict(mask=np.eye(3) > 0), ValueError, r"\(3, 3\) does not broad.* = \(1, 2, 2\)"),
    (dict(activation="GELU"), ValueError, "activation must be .* got 'GELU'"),
    (dict(eps=-1), ValueError, "eps must be at least 0 and finite, got -1"),
]
OF_WEIGHTS = [
    ({"W_2": None}, ValueError, "{0} lacks W_2$"),
    ({"W_1": None, "W_K": None}, ValueError, "{0} lacks W_K, W_1$"),
    ({"w_q": EYE}, ValueError, "{0} holds w_q; the names are W_Q, W_K, .*bias_2$"),
    ({"W_O": COLUMN}, ValueError, r"X has 2 columns and {0}\['W_O'\] has 1 columns"),
    ({"W_2": np.ones((2, 3))}, ValueError, r"and {0}\['W_2'\] has 3 columns"),
    ({"gain_1": np.ones(3)}, ValueError, r"{0}\['gain_1'\] .*\(2,\), got \(3,\)"),
    ({"bias_2": 1.0}, ValueError, r"{0}\['bias_2'\] must .*\(d_model,\), got \(\)"),
    ({"b_1": ["a", "b"]}, TypeError, r"{0}\['b_1'\] must hold real numbers"),
    ({"W_Q": torch.eye(2)}, TypeError, r"{0}\['W_Q'\] is a torch.Tensor"),
]
WRONG["encoder_layer"] += OF_LAYERS
WRONG["encoder"] += OF_LAYERS
for change, error, words in OF_WEIGHTS:
    one, two = words.format("weights"), words.format(r"layers\[1\]")
    WRONG["encoder_layer"] += [(dict(weights=LAYER | change), error, one)]
    WRONG["encoder"] += [(dict(layers=[LAYER, LAYER | change]), error, two)]


@pytest.mark.parametrize("step", WRONG)
def test_what_does_not_fit_is_named_with_both_values_and_the_rule(step):
    for change, error, words in WRONG[step]:
        arrays = [x for x in change.values() if type(x) is np.ndarray]
        with nothing_modified(*arrays), pytest.raises(error, match=words):
            call(step, **change)


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
