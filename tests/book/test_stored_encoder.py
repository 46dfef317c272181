"""What chapters 12 and 13 store is what their three scripts give."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("sklearn")

import mha  # noqa: E402
from _data import digits, warm_up, wrong_attention  # noqa: E402
from _data.training import stored  # noqa: E402
from mha import laws, zoo  # noqa: E402
from mha.nn import MultiHeadAttention  # noqa: E402
from tests.tolerances import TORCH, assert_close  # noqa: E402

IMAGE = 1 / 500  # what one image of the test set is worth
CLOSE = 8 * IMAGE  # between machines, where 480 steps add their rounding


ACCURACY, DIGITS, WARM = map(stored, ("wrong_attention", "digits", "warm_up"))

NAMES = [member.name for member in wrong_attention.MEMBERS]
TEN = [name for name in NAMES if name not in ("no_attention", "right")]


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


# By hand


def test_reversing_and_sorting_are_what_they_are_called():
    tokens = torch.tensor([[3, 1, 2]])
    answers = {name: task(tokens) for name, task in wrong_attention.TASKS.items()}
    assert answers["copy"].tolist() == [[3, 1, 2]]
    assert answers["reverse"].tolist() == [[2, 1, 3]]
    assert answers["sort"].tolist() == [[1, 2, 3]]


def test_without_a_head_its_block_of_W_O_is_zero_and_the_others_stay():
    model = digits.make(0, n_heads=4)
    before = model.encoder.layers[1].attention.W_O.weight.clone()
    less = digits.without_heads(model, [(1, 2)]).encoder.layers
    assert not less[1].attention.W_O.weight[:, 16:24].any()
    torch.testing.assert_close(
        less[1].attention.W_O.weight[:, :16], before[:, :16], rtol=0, atol=0
    )
    torch.testing.assert_close(model.encoder.layers[1].attention.W_O.weight, before)
    assert less[0].attention.W_O.weight.all()


# Laws


@pytest.mark.parametrize("task", ["copy", "reverse"])
@pytest.mark.parametrize("name", [*TEN, "right"])
def test_each_of_the_ten_learns_to_copy_and_to_reverse(task, name):
    assert min(ACCURACY[task][name]) > 0.9999


@pytest.mark.parametrize("name", TEN)
def test_each_of_the_ten_nearly_learns_to_sort(name):
    assert min(ACCURACY["sort"][name]) > 0.95
    assert np.mean(ACCURACY["sort"][name]) > 0.98


def test_no_attention_copies_and_does_nothing_else():
    assert min(ACCURACY["copy"]["no_attention"]) == 1
    assert max(ACCURACY["reverse"]["no_attention"]) < 0.15
    assert max(ACCURACY["sort"]["no_attention"]) < 0.5


@pytest.mark.parametrize("name", TEN)
def test_the_laws_convict_each_of_the_ten_without_a_reference(name):
    member = getattr(zoo, name)
    suspects = [law for law in laws.ALL if law.slug != "equals_reference"]
    assert any(law.check(member).holds is False for law in suspects)


def test_the_three_scales_differ_at_these_sizes():
    d_k = wrong_attention.D_MODEL // wrong_attention.N_HEADS
    assert len({d_k, wrong_attention.N, wrong_attention.D_MODEL, 1}) == 4


def test_the_svm_wins_and_no_attention_is_no_worse_than_attention():
    svm = np.array(DIGITS["RBF-SVM"])
    for name in ("logistic regression", "heads 1", "heads 4", "heads 8"):
        assert (svm > DIGITS[name]).all()
    assert abs(np.mean(DIGITS["no attention"]) - np.mean(DIGITS["heads 4"])) < CLOSE


def test_without_positions_the_order_of_rows_does_not_matter():
    assert DIGITS["no positions"] == DIGITS["no positions, rows shuffled"]
    assert max(DIGITS["no positions, logits move by"]) < 1e-4
    assert max(DIGITS["no positions"]) < min(DIGITS["heads 4"])
    assert max(DIGITS["rows shuffled"]) < 0.5


@pytest.mark.parametrize("h", [4, 8])
def test_a_trained_reader_leans_on_its_heads(h):
    curves = np.array(DIGITS[f"heads {h}, least important first"])
    assert (curves[:, 0] == DIGITS[f"heads {h}"]).all()
    assert (curves[:, -1] < 0.5).all()
    at_random = np.array(DIGITS[f"heads {h}, at random"])
    assert curves.mean() > at_random.mean()


def test_post_norm_at_a_high_rate_stays_at_chance_without_warm_up():
    cold = [accuracy for accuracy, _ in WARM["post 0.003 warm-up 0"]]
    warm = [accuracy for accuracy, _ in WARM["post 0.003 warm-up 100"]]
    assert max(cold) < 0.15
    assert min(warm) > 0.7


def test_pre_norm_learns_at_either_rate_with_and_without_warm_up():
    for name, runs in WARM.items():
        if name.startswith("pre"):
            assert min(accuracy for accuracy, _ in runs) > 0.88, name


# Agreement


def test_a_layer_from_the_zoo_with_the_right_member_is_our_layer():
    torch.manual_seed(0)
    theirs = wrong_attention.FromTheZoo(zoo.right, 6, 3).double()
    ours = MultiHeadAttention(6, 3).double()
    ours.load_state_dict(theirs.state_dict())
    X = torch.randn(2, 5, 6, dtype=torch.float64)
    assert_close(theirs(X).detach(), ours(X).detach(), TORCH)
    numbers = mha.multi_head_attention(X.numpy(), n_heads=3, **ours.numpy_weights())
    assert_close(theirs(X).detach().numpy(), numbers, TORCH)


def test_the_tables_hold_all_cells_and_seeds():
    assert set(ACCURACY) == set(wrong_attention.TASKS)
    for rows in ACCURACY.values():
        assert list(rows) == NAMES
        assert {len(row) for row in rows.values()} == {len(wrong_attention.SEEDS)}
    assert list(WARM) == list(warm_up.cells())
    assert {len(runs) for runs in WARM.values()} == {len(warm_up.SEEDS)}
    assert {len(row) for row in DIGITS.values()} == {len(digits.SEEDS)}
