// One encoder layer with two heads, in plain numbers, and ten ways to get it wrong.
// It is the twin of `mha` for this size; a test compares all of it with the package.
export const HEADS = 2;
const EPS = 1e-5; // as in a layer norm

export const range = (n) => [...Array(n).keys()];
export const map = (A, f) => A.map((row, i) => row.map((x, j) => f(x, i, j)));
export const turned = (A) => A[0].map((_, j) => A.map((row) => row[j]));
export const total = (x) => x.reduce((a, b) => a + b, 0);
export const mean = (x) => total(x) / x.length;
export const spread = (x, m = mean(x)) => Math.sqrt(mean(x.map((a) => (a - m) ** 2)) + EPS);
export const plus = (A, B) => map(A, (x, i, j) => x + B[i][j]);
export const product = (A, B) =>
  A.map((row) => B[0].map((_, j) => row.reduce((sum, a, k) => sum + a * B[k][j], 0)));
const byHead = (A) => range(HEADS).map((r) => A.map((row) =>
  row.slice((r * row.length) / HEADS, ((r + 1) * row.length) / HEADS)));

export function softmax(scores) {
  const top = Math.max(...scores);
  if (top === -Infinity) return scores.map(() => 0); // a row that may attend to nothing
  const powers = scores.map((s) => Math.exp(s - top)), sum = total(powers);
  return powers.map((p) => p / sum);
}

// what the scores are divided by
export function divisor(d_k, bug, scale) {
  if (!scale || bug === "no_scale") return 1;
  return Math.sqrt(bug === "scale_sqrt_d_model" ? HEADS * d_k : d_k);
}

// whether the softmax sees the score of query i with key j
export const sees = (mask, i, j, bug) =>
  bug === "mask_after_softmax" || mask[i][j] !== (bug === "mask_inverted");

// one head: scores S, scaled T, masked M, weights A, output H
export function attend(Q, K, V, mask, bug, scale = true, given = null) {
  if (bug === "keys_and_values_swapped") [K, V] = [V, K];
  const S = given ?? product(Q, turned(K)), by = divisor(K[0].length, bug, scale);
  const T = map(S, (s) => s / by);
  const M = map(T, (t, i, j) => (sees(mask, i, j, bug) ? t : -Infinity));
  const rows = bug === "softmax_over_queries" ? turned(turned(M).map(softmax)) : M.map(softmax);
  const late = bug === "mask_after_softmax";
  const A = map(rows, (a, i, j) => (late && !mask[i][j] ? 0 : a));
  return { K, V, S, T, M, A, H: product(A, V) };
}

// the head, the token and the column of what stands in row i, column j of both heads
export function merged(i, j, n, d, bug) {
  if (bug !== "merge_without_transpose") return [Math.floor(j / d), i, j % d];
  const place = i * HEADS * d + j; // as the numbers lie in memory, head after head
  return [Math.floor(place / (n * d)), Math.floor(place / d) % n, place % d];
}

export function norm(A, bug) {
  if (bug === "norm_over_tokens") return turned(norm(turned(A)));
  const moments = A.map((row) => [mean(row), spread(row)]);
  return map(A, (x, i) => (x - moments[i][0]) / moments[i][1]);
}

// every matrix of the layer; those of attention come once for each head. Queries, keys,
// values and scores are computed unless they are `given`.
export function forward(input, bug = "") {
  const { X, W_Q, W_K, W_V, W_O, W_1, W_2, mask, scale = true } = input;
  const project = (letter, W) => input.given?.[letter] ?? byHead(product(X, W));
  const Q = project("Q", W_Q), keys = project("K", W_K), values = project("V", W_V);
  const each = Q.map((q, r) => attend(q, keys[r], values[r], mask, bug, scale, input.given?.S?.[r]));
  const [K, V, S, T, M, A, H] = [..."KVSTMAH"].map((name) => each.map((head) => head[name]));
  const n = X.length, d = H[0][0].length;
  const C = X.map((_, i) => range(HEADS * d).map((j) => {
    const [r, t, c] = merged(i, j, n, d, bug);
    return H[r][t][c];
  }));
  const W = bug === "no_output_projection" ? square(HEADS * d, (i, j) => +(i === j)) : W_O;
  const [D1, D2] = range(HEADS).map((r) => { // what each head adds to Y
    const own = (_, k) => Math.floor(k / d) === r;
    return product(C.map((row) => row.filter(own)), W.filter(own));
  });
  const Y = product(C, W);
  const R = bug === "no_residual" ? Y : plus(X, Y); // before its norm
  const Z = norm(R, bug);
  const U = map(product(Z, W_1), (x) => Math.max(0, x));
  const F = product(U, W_2), P = plus(Z, F), N = norm(P, bug);
  return {
    X, W_Q: byHead(W_Q), W_K: byHead(W_K), W_V: byHead(W_V), W_O, W_1, W_2, mask, Q, K, V,
    Q2: Q, Kt: K.map(turned), S, T, M, A, V2: V, H, C, D1, D2, Y, R, Z, U, F, P, N,
  };
}

const square = (n, f) => range(n).map((i) => range(n).map((j) => f(i, j)));
export const masks = {
  open: (n) => square(n, () => true),
  causal: (n) => square(n, (i, j) => j <= i),
  padding: (n) => square(n, (i, j) => j < n - 1),
};

export const differs = (a, b) => a !== b && !(Math.abs(a - b) <= 1e-9 * (1 + Math.abs(b)));
