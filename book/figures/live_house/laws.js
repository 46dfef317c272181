// Eight laws, each asked of the layer as it stands: its numbers, its mask, its bug.
// A law returns "" where it holds, or the numbers that break it.
import { HEADS, attend, differs, forward, map, masks, mean, norm, plus, range, total, turned } from "./model.js";
import { num } from "./explain.js";

const zeros = (W) => map(W, () => 0);
const shifted = (A) => map(A, (x, i, j) => x + [2, 1][j % 2]);

// the first number in which two matrices differ, in words
function differ(wanted, got, words, before = "") {
  for (const [i, row] of wanted.entries()) {
    const j = row.findIndex((x, j) => differs(got[i][j], x));
    if (j >= 0) return `${before}“${words[i]}” gets ${num(got[i][j])} instead of ${num(row[j])}`;
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

// independent numbers with mean 0 and variance 1, always the same ones
function normals(n, d, seed) {
  const uniform = () => {
    seed = (seed * 1103515245 + 12345) % 2147483648;
    return (seed + 0.5) / 2147483648;
  };
  const one = () => Math.sqrt(-2 * Math.log(uniform())) * Math.cos(2 * Math.PI * uniform());
  return range(n).map(() => range(d).map(one));
}
const MANY = 32, QUERIES = normals(MANY, 16, 1), KEYS = normals(MANY, 16, 2);
const known = {}; // answers that depend on no number of the reader

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
      return differ(seen(same), seen(H), seen(words), `all values (3, 1), ${name}`);
    });
  },
  scores_keep_unit_variance({ scale }, bug) {
    const ask = () => {
      const mask = masks.open(MANY), { A } = attend(QUERIES, KEYS, KEYS, mask, bug, scale);
      const logs = A.map((row) => row.map(Math.log)).map((row) => row.map((x) => x - mean(row)));
      const deviation = Math.sqrt((mean(logs.flat().map((x) => x * x)) * MANY) / (MANY - 1));
      return Math.abs(deviation - 1) < 0.15 ? "" : `random queries and keys of 16 numbers: the scaled scores spread by ${num(deviation, 2)} (standard deviation), not by 1`;
    };
    return bug === "mask_inverted" ? laws.scores_keep_unit_variance({ scale }, "")
      : (known[`${bug} ${scale}`] ??= ask());
  },
  padding_changes_nothing(input, bug, found, words) {
    const last = words.length - 1;
    const mask = map(input.mask, (open, i, j) => open && (j < last || i === last)); // nobody else sees the last
    const other = (A) => map(A, (x, i, j) => (i === last ? x + [3, -1, 2, 1][j % 4] : x));
    const rows = (input) => forward({ ...input, mask }, bug).N.slice(0, last);
    return differ(rows(input), rows(onWords(input, other)), words, `“${words[last]}” hidden and changed: `);
  },
  outputs_follow_tokens(input, bug, found, words) {
    const mix = (A) => [2, 0, 3, 1].map((i) => A[i]);
    const moved = { ...onWords(input, mix), mask: turned(mix(turned(mix(input.mask)))) };
    return differ(mix(found.N), forward(moved, bug).N, mix(words), `order ${mix(words).join(", ")}: `);
  },
  shifting_keys_changes_nothing(input, bug, found, words, { Q, K, V }) {
    const output = (K) => attend(Q[0], K, V[0], input.mask, bug, input.scale).H;
    return differ(output(K[0]), output(shifted(K[0])), words, "(2, 1) added to each key of head 1: ");
  },
  concat_is_a_sum(input, bug, found, words) {
    const d = input.W_O.length / HEADS, owner = (k) => Math.floor(k / d);
    const term = (r, silent) => forward({
      ...input,
      W_V: map(input.W_V, (w, i, j) => (silent && owner(j) !== r ? 0 : w)),
      W_O: map(input.W_O, (w, i) => (owner(i) !== r ? 0 : w)),
    }, bug).Y;
    const sum = (silent) => range(HEADS).map((r) => term(r, silent)).reduce(plus);
    return differ(found.Y, sum(false), words, "output from the upper half of W_O, plus output from the lower half: ")
      || differ(found.Y, sum(true), words, "output of head 1 alone, plus output of head 2 alone: ");
  },
  silent_parts_pass_the_input_on(input, bug, found, words) {
    const silent = forward({ ...input, W_O: zeros(input.W_O), W_2: zeros(input.W_2) }, bug);
    return differ(norm(norm(input.X)), silent.N, words, "W_O = W_2 = 0: ");
  },
};
