import sys; sys.path.insert(0,"/tmp/s")
from edit import edit
edit("book/03_scale.ipynb", [
 ("1.133 with it, about six times as long. The\n", "1.133 with it, six to seven times as long. (The mean without the scale rests on a few long gradients, so other seeds change its second digit.) The\n"),
 ("is about six times smaller on average", "is six to seven times smaller on average"),
])
edit("book/04_masks.ipynb", [
 ("Both mistakes have been made in public code: one program [masked after the softmax](https://github.com/lucidrains/memory-compressed-attention/issues/2), and another [multiplied its scores by the mask](https://github.com/georg-wolflein/good-features/pull/1), which gives hidden pairs the score 0.",
  "The second mistake has been made in public code: one program [multiplied its scores by the mask](https://github.com/georg-wolflein/good-features/pull/1), which gives hidden pairs the score 0."),
 ("https://github.com/pytorch/pytorch/pull/131060", "https://github.com/pytorch/pytorch/pull/133882"),
])
edit("book/06_why_heads.ipynb", [
 ("For example, the average of two of them says nothing about their difference, because average and difference are independent.",
  "For example, the average of two of them with equal weights says nothing about their difference, because average and difference are then independent."),
 ("Each random head adds 1, although it attends to all tokens.", "Each random head adds 1, although it attends to all tokens (up to $n$, the number of tokens)."),
 ("as in a [published model for videos of surgery](https://github.com/CAMMA-public/rendezvous/issues/10)", "as in the PyTorch version of a [published model for videos of surgery](https://github.com/CAMMA-public/rendezvous/issues/10) (the original in TensorFlow is right)"),
])
edit("book/08_output.ipynb", [
 ("so the minus sign must come from a matrix, here from $W_O$.", "and no number in our $X$ is negative, so the minus sign must come from a matrix, here from $W_O$."),
 ("because one large product is usually faster than many small ones.", "because one product takes one call and needs no loop over heads. (Whether it is faster depends on the sizes: chapter 7 found little difference.)"),
 ("the output depends on all $4 d_{\\text{model}}^2$ entries of the four matrices, for every number of heads. |", "the output depends on all $4 d_{\\text{model}}^2$ entries of the four matrices, for every number of heads, if tokens and matrices are drawn at random. |"),
 ("Only the exponentials grow. Sixteen heads", "The exponentials grow most. Sixteen heads"),
 ("so the four matrices and the number of products stay the same. But each head has its own table of $n \\times n$ weights, so the number of exponentials grows with $h$,", "so the four matrices and the number of products in them, in the scores and in the averages stay the same. But each head has its own table of $n \\times n$ weights, so the number of exponentials grows with $h$ (and so do the divisions by $\\sqrt{d_k}$, one for each score),"),
])
edit("book/10_positions.ipynb", [
 ("and readers of [another repository](https://github.com/songyangco/GETNext/issues/2) report it too.", "and readers of [another repository](https://github.com/songyangco/GETNext/issues/2) ask whether it is a mistake there."),
 ("So for positions $t$ and $s$,", "So if the width is even, positions $t$ and $s$ have"),
 ("a dozen for 32 positions, and about 31 for 512.", "at width 64, a dozen for 32 positions, and about 31 for 512."),
 ("The dot product of two rows depends on their offset alone, though", "At an even width, the dot product of two rows depends on their offset alone, though"),
])
edit("book/11_encoder_layer.ipynb", [
 ("Such a product changes its sign when $x$ does, so", "Such a product (without biases) changes its sign when $x$ does, so"),
 ("So layer normalisation is not batch normalisation along another axis. The two average over different numbers, and these decide which words can influence each other.",
  "So what matters is which numbers a norm averages over: layer normalisation uses the features of one token, while batch normalisation uses one feature of all tokens and sentences of the batch. (It also stores statistics for use after training.)"),
 ("In other words, a deviation survives only where it is in the query, in the key *and* in the value.", "In other words, a deviation survives only where it is in the query, in the key *and* in the value. (This needs the same visible keys for all queries. With a causal mask, the rows average over different keys, and the slope is 1.)"),
 ("One author did not repair it, because a repair would break all trained weights.", "One author put the repair off, because it would break all trained weights; it came ten months later, with newly trained ones."),
 ("](https://github.com/allenai/OLMo/pull/680) until July 2024.", "](https://github.com/allenai/OLMo/pull/680) from May to July 2024."),
 ("Without it, a few layers of attention with random weights make all tokens equal.", "Without it and without a causal mask, a few layers of attention with random weights make all tokens equal."),
 ("so no other sentence, padding or later word can influence it. A norm over the tokens or over the batch lets them in, and no mask prevents it.", "so no other sentence, padding or later word can influence it. A norm over the tokens lets padding and later words in, and a norm over the batch also other sentences; an attention mask prevents neither."),
])
edit("book/12_encoder.ipynb", [
 ("Eight of them were found in public code (see, for example, `zoo.no_scale.link`).", "Seven of them were found in public code (see, for example, `zoo.no_scale.link`), and an eighth, the split without a transpose, was proposed there as a repair."),
 ("can be imitated only at one length, and", "can be imitated at one length at a time, and"),
 ("With some weights and a causal mask, these three let the future through, whereas correct attention never does. So no weights of correct attention give the same outputs with this mask,", "With some weights and a causal mask, these three let the future through, whereas correct attention never does. So no weights of correct attention give the same outputs with this mask (our two tasks have none, and about them the law says nothing),"),
 ("so training never changes it:", "so its gradient is 0 and Adam never changes it (AdamW's weight decay would only shrink it):"),
])
edit("book/13_what_heads_learn.ipynb", [
 ("Until now we have collected **laws**, which are true for all weights.", "Until now we have collected **laws**, which are true whatever training has made of the weights."),
 ("The law is true for all weights. Everything else", "The law is true of trained and untrained weights alike. Everything else"),
])
edit("book/14_real_encoder.ipynb", [
 ("A law holds for all weights, including those of the published model.", "A law is not about particular weights, so it must hold for those of the published model, too."),
])
edit("book/15_laws.ipynb", [
 ("The laws hold in exact arithmetic, so each check has a tolerance for rounding.", "Most laws hold in exact arithmetic, and their checks allow for rounding. A few also need room for something else, such as the ε of a norm or a finite step in place of a slope."),
])
edit("book/misstatements.md", [])
edit("book/own_attention.md", [("The fused path applies both.", "The fused path applies both with PyTorch 2.13, and raises an error with 2.15.")])
