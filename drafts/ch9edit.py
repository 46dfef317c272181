import json
f="/work/main/book/09_multi_head.ipynb"; nb=json.load(open(f)); cells=nb["cells"]
by={c["id"]:i for i,c in enumerate(cells)}
def src(s): return s.strip("\n").splitlines(keepends=True)
def md(i,s): return {"cell_type":"markdown","id":i,"metadata":{},"source":src(s)}
def code(i,s,tags=()): return {"cell_type":"code","execution_count":None,"id":i,"metadata":{"tags":list(tags)} if tags else {},"outputs":[],"source":src(s)}
start=[i for i,c in enumerate(cells) if "### A layer that can be trained, in 19 lines" in "".join(c["source"])][0]
end=by["multi-head-d109"]
ids=[c["id"] for c in cells[start:end]]; print(ids)
new=[
md(ids[0], r"""
## In practice

### A layer that you can copy

Training changes the matrices in small steps, and PyTorch computes in which direction ([prerequisites](prerequisites.md#pre-training-loop)). So here is the layer once more, as a class for PyTorch that needs nothing from our package. It has four `Linear` layers, which hold the four matrices and a bias for each. The comments give the shapes:
"""),
code("multi-head-a62a", r'''
class MultiHead(torch.nn.Module):
    def __init__(self, d_model, h, dropout=0.0):
        super().__init__()
        assert d_model % h == 0, f"{d_model} columns do not make {h} equal heads"
        self.h, self.dropout = h, torch.nn.Dropout(dropout)
        self.W_Q, self.W_K, self.W_V, self.W_O = (
            torch.nn.Linear(d_model, d_model) for _ in range(4)
        )

    def forward(self, X, padding=None, mask=None):  # X: (batch, n, d_model)
        Q, K, V = self.project(X)  # each (batch, h, n, d_k)
        H = self.attend(Q, K, V, self.visible(X, padding, mask))
        return self.W_O(H.transpose(-3, -2).flatten(-2))  # (batch, n, d_model)

    def project(self, X):
        return [self.split(W(X)) for W in (self.W_Q, self.W_K, self.W_V)]

    def split(self, M):  # (batch, n, d_model) to (batch, h, n, d_k)
        return M.unflatten(-1, (self.h, -1)).transpose(-3, -2)

    def attend(self, Q, K, V, visible):
        S = Q @ K.mT / math.sqrt(Q.shape[-1])  # (batch, h, n, n)
        A = S.masked_fill(~visible, -torch.inf).softmax(-1)
        A = A.masked_fill(~visible, 0)  # not NaN where a token sees nothing
        return self.dropout(A) @ V  # (batch, h, n, d_k)

    def visible(self, X, padding, mask):  # True where a query may attend to a key
        batch, n, _ = X.shape
        visible = torch.ones(batch, 1, n, n, dtype=torch.bool, device=X.device)
        if padding is not None:  # (batch, n), True at a word
            assert padding.dtype == torch.bool and padding.shape == (batch, n)
            visible = visible & padding[:, None, None, :]
        if mask is not None:  # (query, key) or (batch, head, query, key)
            assert mask.dtype == torch.bool and mask.ndim in (2, 4)
            visible = visible & mask
        return visible
'''),
md("multi-head-bea4", r"""
The table of shapes explains each line. `unflatten` cuts the last axis, of length $d_{\text{model}}$, into two axes of lengths $h$ and $d_k$, and `transpose` then moves the heads in front of the tokens, as chapter 7 did with reshape and swap. `K.mT` is $K^\top$ in every head of every sentence. In both masks True means *may attend*, so `~visible` marks the scores that become $-\infty$. Dropout (some weights are set to 0 at random in training) acts on the weights, after the softmax. The last line of `forward` concatenates the heads and multiplies by $W_O$.

The layer of the package, `mha.nn.MultiHeadAttention`, has the same four names. In addition it has cross-attention and errors that explain themselves. With the same weights both give the same outputs:
"""),
code("multi-head-f772", r'''
torch.manual_seed(0)
copied, tokens_12 = MultiHead(12, 3).double(), torch.randn(3, 5, 12).double()
full_layer = mha.nn.MultiHeadAttention(12, 3).double()
full_layer.load_state_dict(copied.state_dict())
causal = torch.ones(5, 5, dtype=torch.bool).tril()
padding = torch.arange(5) < torch.tensor([3, 5, 4])[:, None]
both_masks = causal & padding[:, None, None, :]

ours = full_layer(tokens_12, mask=both_masks)
torch.testing.assert_close(copied(tokens_12, padding, causal), ours, rtol=0, atol=1e-12)
print("the class and the package: the same outputs, with padding and a causal mask")
print("parameters:", sum(p.numel() for p in copied.parameters()))
'''),
md("multi-head-trap1", r"""
The 624 parameters are four matrices of 12 · 12 numbers and four biases of 12 numbers.

Why is padding an argument of its own? A mask with three axes, such as (batch, 1, key), is a natural way to write padding, and NumPy and PyTorch compare shapes from the right. So it is read as (head, 1, key): head 1 gets the padding of sentence 1 in *every* sentence, head 2 that of sentence 2, and so on. Usually this raises an error, but it does not if the batch has as many sentences as the layer has heads.

**Before you run it:** three sentences, three heads, and sentence 1 has three words and two places of padding. We change what stands in its padding. By how much do the outputs of its three words change, in our class and in one that takes a mask as it comes?
"""),
md("multi-head-trap2", "> *Your guess (double-click to write it here):*"),
code("multi-head-trap3", r'''
class Careless(MultiHead):
    def visible(self, X, padding, mask):
        return mask


careless_three = Careless(12, 3).double()
careless_three.load_state_dict(copied.state_dict())
refilled = tokens_12.clone()
refilled[0, 3:] += 1
for name, run in (
    ("padding as (batch, n)", lambda X: copied(X, padding)),
    ("mask as (batch, 1, n)", lambda X: careless_three(X, mask=padding[:, None])),
):
    moved = (run(refilled) - run(tokens_12))[0, :3].abs().max()
    print(f"{name}: the words of sentence 1 change by {moved:.2f}")
''', ["predict"]),
md("multi-head-trap4", r"""
<details>
<summary>What happens</summary>

In our class nothing changes. In the careless one all shapes fit and no error is raised, but only head 1 hides the padding of sentence 1, so the other two heads attend to it. In the same way a padding mask of shape (batch, n) that is passed as `mask` would run silently if the batch had as many sentences as a sentence has words. Therefore our class takes padding by its own name, compares its shape with $X$, and refuses a mask with three axes.

</details>

### The same class with PyTorch's kernel, and with one projection

Two variants are common, and each replaces one method. The first lets PyTorch compute the attention. Its function can avoid storing the table $A$ ([chapter 16](16_scale_up.ipynb) shows how), so there are no weights to look at. The second computes queries, keys and values by one product:
"""),
code("multi-head-var1", r'''
class WithKernel(MultiHead):
    def attend(self, Q, K, V, visible):
        p = self.dropout.p if self.training else 0.0
        return torch.nn.functional.scaled_dot_product_attention(
            Q, K, V, attn_mask=visible, dropout_p=p
        )


class OneProjection(MultiHead):
    def __init__(self, d_model, h, dropout=0.0):
        super().__init__(d_model, h, dropout)
        del self.W_Q, self.W_K, self.W_V
        self.W_QKV = torch.nn.Linear(d_model, 3 * d_model)

    def project(self, X):
        return [self.split(M) for M in self.W_QKV(X).chunk(3, dim=-1)]
'''),
code("multi-head-var2", r'''
with_kernel, one_projection = (C(12, 3).double() for C in (WithKernel, OneProjection))
state = copied.state_dict()
with_kernel.load_state_dict(state)
for part in ("weight", "bias"):
    three_parts = [state.pop(f"W_{name}.{part}") for name in "QKV"]
    state[f"W_QKV.{part}"] = torch.cat(three_parts)
one_projection.load_state_dict(state)

for variant in (with_kernel, one_projection):
    Y_variant = variant(tokens_12, padding, causal)
    torch.testing.assert_close(Y_variant, ours, rtol=0, atol=1e-12)
print("both variants: the same outputs")
print("W_QKV:", tuple(one_projection.W_QKV.weight.shape))
'''),
md("multi-head-14da", r"""
To keep trained numbers, the cell writes the three old weights one above the other, and the three biases too. PyTorch's own layer does the same: if all inputs have the same width, it stores $W_Q$, $W_K$ and $W_V$ in one array, `in_proj_weight`. Like every linear layer of PyTorch, it multiplies by the transpose of what it stores. [`mha.nn.from_torch`](../mha/nn.py) and [`mha.nn.to_torch`](../mha/nn.py) carry the weights from one layer to the other.

One array can change the start of training. Some rules for random starting weights look at both lengths of a matrix, and one projection has three times as many rows. For example, PyTorch's layer fills `in_proj_weight` by such a rule ([Glorot and Bengio, 2010](https://proceedings.mlr.press/v9/glorot10a.html)):
"""),
code("f8c86992eb58", r'''
in_torch = mha.nn.to_torch(full_layer)
carried = mha.nn.from_torch(in_torch).numpy_weights()
print("in_proj_weight:", tuple(in_torch.in_proj_weight.shape))
print("W_Q:           ", carried["W_Q"].shape)

torch.manual_seed(0)
wide, single = torch.empty(3 * 512, 512), torch.empty(512, 512)
for weight in (wide, single):
    torch.nn.init.xavier_uniform_(weight)
print(f"typical size in one array {wide.std():.4f}, apart {single.std():.4f}")
'''),
md("multi-head-start", r"""
The bound of this rule is $\sqrt{6 / (\text{rows} + \text{columns})}$, so numbers in one array start $\sqrt 2$ times smaller than in three: $6/4d$ in place of $6/2d$ under the root. The scores, products of two such projections, start two times smaller. If you copy the settings of a model from one form to the other, draw each of the three blocks as a matrix of its own. (The default of `Linear`, which our class uses, looks at the columns only, so there both forms start alike.)
"""),
]
nb["cells"][start:end]=new
json.dump(nb,open(f,"w"),indent=1,ensure_ascii=False); open(f,"a").write("\n")
