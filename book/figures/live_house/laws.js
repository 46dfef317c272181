// Nine laws, each asked of the layer as it stands: its numbers, its mask, its bug.
// A law returns "" where it holds, or the numbers that break it.
import { HEADS, attend, differs, forward, map, masks, mean, norm, plus, range, total, turned } from "./model.js";
import { ORDER, num } from "./explain.js";

const zeros = (W) => map(W, () => 0);
const shifted = (A) => map(A, (x, i, j) => x + [2, 1][j % 2]);

// the first number in which two matrices differ, in words
function differ(wanted, got, words, what, before = "") {
  for (const [i, row] of wanted.entries()) {
    const j = row.findIndex((x, j) => differs(got[i][j], x));
    if (j >= 0) return `${before}${what} of “${words[i]}”, ${ORDER[j]} number: ${num(got[i][j])} instead of ${num(row[j])}`;
  }
  return "";
}

// asks with the mask of the reader, and with one that has something to hide
const withMasks = (mask, check) =>
  check(mask, "") || check(masks.causal(mask.length), "causal mask: ");

// the input with `change` made to everything that has one row for each word
const onWords = (input, change) => ({
  ...input,
  X: change(input.X),
  given: input.given && Object.fromEntries(
    Object.entries(input.given).map(([name, each]) => [name, each.map(change)])),
});

// independent numbers with mean 0 and variance 1: all signs, each as often as the others
const SIGNS = [[1, 1], [1, -1], [-1, 1], [-1, -1]];

export const laws = {
  rows_sum_to_one(input, bug, found, words) {
    return withMasks(input.mask, (mask, name) => {
      const { A } = mask === input.mask ? found : forward({ ...input, mask }, bug);
      for (const r of range(HEADS))
        for (const i of range(mask.length)) {
          const sum = total(A[r][i]), seen = mask[i].some(Boolean);
          if (seen && differs(sum, 1)) return `${name}head ${r + 1}, “${words[i]}”: its weights sum to ${num(sum)}`;
        }
      return "";
    });
  },
  constant_values_stay(input, bug, found, words, { Q, K }) {
    return withMasks(input.mask, (mask, name) => {
      const seen = (A) => A.filter((_, i) => mask[i].some(Boolean)), same = Q[0].map(() => [3, 1]);
      const { H } = attend(Q[0], K[0], same, mask, bug, input.scale);
      return differ(seen(same), seen(H), seen(words), "head output", `all values (3, 1), ${name}`);
    });
  },
  scores_keep_unit_variance({ scale }, bug) {
    // this bug swaps what is hidden, and here nothing is
    const { A } = attend(SIGNS, SIGNS, SIGNS, masks.open(4), bug === "mask_inverted" ? "" : bug, scale);
    const scores = A.map((row) => row.map(Math.log)).map((row) => row.map((x) => x - mean(row)));
    const square = mean(scores.flat().map((x) => x * x));
    return differs(square, 1) ? `queries and keys of independent signs, such as (1, −1): the scaled scores have a mean square of ${num(square)}, not of 1` : "";
  },
  future_leaves_past_alone(input, bug, found, words) {
    const mask = masks.causal(words.length);
    const rows = (input) => forward({ ...input, mask }, bug).N;
    const before = rows(input);
    for (let k = words.length - 1; k > 0; k--) { // the words from k on change
      const other = (A) => map(A, (x, i, j) => (i >= k ? x + [3, -1, 2, 1][j % 4] : x));
      const after = rows(onWords(input, other)).slice(0, k);
      const failure = differ(before.slice(0, k), after, words, "output", `causal mask, “${words.slice(k).join("”, “")}” changed: `);
      if (failure) return failure;
    }
    return "";
  },
  padding_changes_nothing(input, bug, found, words) {
    const last = words.length - 1;
    const mask = map(input.mask, (open, i, j) => open && (j < last || i === last)); // nobody else sees the last
    const other = (A) => map(A, (x, i, j) => (i === last ? x + [3, -1, 2, 1][j % 4] : x));
    const rows = (input) => forward({ ...input, mask }, bug).N.slice(0, last);
    return differ(rows(input), rows(onWords(input, other)), words, "output", `“${words[last]}” hidden and changed: `);
  },
  outputs_follow_tokens(input, bug, found, words) {
    const mix = (A) => [2, 0, 3, 1].map((i) => A[i]);
    const moved = { ...onWords(input, mix), mask: turned(mix(turned(mix(input.mask)))) };
    return differ(mix(found.N), forward(moved, bug).N, mix(words), "output", `order ${mix(words).join(", ")}: `);
  },
  shifting_keys_changes_nothing(input, bug, found, words, { Q, K, V }) {
    const output = (K) => attend(Q[0], K, V[0], input.mask, bug, input.scale).H;
    return differ(output(K[0]), output(shifted(K[0])), words, "head output", "(2, 1) added to each key of head 1: ");
  },
  concat_is_a_sum(input, bug, found, words) {
    const d = input.W_O.length / HEADS, owner = (k) => Math.floor(k / d);
    const term = (r, silent) => forward({
      ...input,
      W_V: map(input.W_V, (w, i, j) => (silent && owner(j) !== r ? 0 : w)),
      W_O: map(input.W_O, (w, i) => (owner(i) !== r ? 0 : w)),
    }, bug).Y;
    const sum = (silent) => range(HEADS).map((r) => term(r, silent)).reduce(plus);
    return differ(found.Y, sum(false), words, "sum", "output from the upper half of W_O, plus output from the lower half: ")
      || differ(found.Y, sum(true), words, "sum", "output of head 1 alone, plus output of head 2 alone: ");
  },
  silent_parts_pass_the_input_on(input, bug, found, words) {
    const silent = forward({ ...input, W_O: zeros(input.W_O), W_2: zeros(input.W_2) }, bug);
    return differ(norm(norm(input.X)), silent.N, words, "output", "W_O = W_2 = 0: ");
  },
};
