// The model of chapter 13 in plain numbers: mha.encoder with pre-norm and a final norm, and
// ways to get its attention wrong. Rows are letters; nothing here knows about the page.
const stressModel = (() => {
  const EPS = 1e-5, LONGEST = 14; // of a layer norm, as in mha; letters of a word
  const VECTORS = ["b_Q", "b_K", "b_V", "b_O", "b_2", "gain_1", "bias_1", "gain_2", "bias_2"];
  const range = (n) => [...Array(n).keys()];

  // A file holds the arguments of mha.encoder as lists of numbers, as stress.exported makes
  // them. In those of the page a matrix is {whole, scales}: integers from -127 to 127 in one
  // byte each, and what to multiply each row by. A vector is {exact}, in float32.
  function unpack(x) {
    if (typeof x !== "object" || x === null) return x;
    if (x.exact) return [...new Float32Array(bytes(x.exact))];
    if (x.whole) {
      const scales = unpack({ exact: x.scales }), all = new Int8Array(bytes(x.whole));
      const columns = all.length / scales.length;
      return scales.map((s, r) => [...all.subarray(r * columns, (r + 1) * columns)].map((n) => n * s));
    }
    if (Array.isArray(x)) return typeof x[0] === "number" ? x : x.map(unpack);
    return Object.fromEntries(Object.entries(x).map(([name, part]) => [name, unpack(part)]));
  }

  const bytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer;

  // the model of a file, if all that it needs is there and fits together
  function read(file) {
    const m = unpack(file);
    const d = m?.embed?.[0]?.length, wide = m?.layers?.[0]?.b_1?.length;
    if (!d || !wide) throw new Error("It is not one that stress.exported makes.");
    fit("embed", m.embed, 27, d);
    fit("positions", m.positions, Math.max(LONGEST, m.positions?.length ?? 0), d);
    m.layers.forEach((layer, l) => {
      for (const letter of "QKVO") fit(`W_${letter} of layer ${l + 1}`, layer[`W_${letter}`], d, d);
      fit(`W_1 of layer ${l + 1}`, layer.W_1, d, wide);
      fit(`W_2 of layer ${l + 1}`, layer.W_2, wide, d);
      fit(`b_1 of layer ${l + 1}`, [layer.b_1], 1, wide);
      for (const name of VECTORS) fit(`${name} of layer ${l + 1}`, [layer[name]], 1, d);
    });
    fit("final_norm", m.final_norm, 2, d);
    fit("score", [m.score?.[0]], 1, d);
    fit("the bias of score", [m.score?.[1]], 1, 1);
    if (!(m.n_heads >= 1) || d % m.n_heads) throw new Error(`${m.n_heads} heads cannot share ${d} columns.`);
    return m;
  }

  function fit(name, rows, n, columns) {
    if (!Array.isArray(rows) || !rows.every(Array.isArray)) throw new Error(`It has no ${name}.`);
    if (rows.length !== n || rows.some((row) => row.length !== columns))
      throw new Error(`${name} should have the shape (${n}, ${columns}).`);
    if (!rows.flat().every(Number.isFinite)) throw new Error(`${name} holds something that is no number.`);
  }

  function dot(a, b) {
    let sum = 0;
    for (let k = 0; k < a.length; k++) sum += a[k] * b[k];
    return sum;
  }

  // the sum of the rows of M, each times its number in x, added to y
  function mix(x, M, y) {
    for (let i = 0; i < x.length; i++) {
      const a = x[i], row = M[i];
      for (let k = 0; k < y.length; k++) y[k] += a * row[k];
    }
    return y;
  }

  const linear = (X, W, b) => X.map((x) => mix(x, W, Float64Array.from(b)));
  const plus = (X, Y) => X.map((x, i) => x.map((a, k) => a + Y[i][k]));
  const turned = (A) => A[0].map((_, j) => A.map((row) => row[j]));

  function layer_norm(X, gain, bias) {
    return X.map((x) => {
      const mean = x.reduce((a, b) => a + b) / x.length;
      const spread = Math.sqrt(x.reduce((s, a) => s + (a - mean) ** 2, 0) / x.length + EPS);
      return x.map((a, k) => ((a - mean) / spread) * gain[k] + bias[k]);
    });
  }

  function softmax(scores) {
    const top = Math.max(...scores);
    if (top === -Infinity) return scores.map(() => 0); // all is hidden
    const powers = scores.map((s) => Math.exp(s - top));
    const sum = powers.reduce((a, b) => a + b);
    return powers.map((p) => p / sum);
  }

  // ------------------------------------------------------- attention, and how it goes wrong

  function split_heads(X, n_heads, bug) {
    const d = X[0].length / n_heads, n = X.length;
    if (bug !== "split_without_transpose")
      return range(n_heads).map((r) => X.map((x) => x.slice(r * d, (r + 1) * d)));
    const flat = X.flatMap((x) => [...x]); // as the numbers lie in memory, row after row
    return range(n_heads).map((r) => range(n).map((i) => flat.slice((r * n + i) * d, (r * n + i + 1) * d)));
  }

  function merge_heads(heads, bug) {
    const rows = heads.flat(), n = heads[0].length; // as they lie in memory, head after head
    const of = (i, r) => (bug === "merge_without_transpose" ? rows[i * heads.length + r] : heads[r][i]);
    return range(n).map((i) => Float64Array.from(heads.flatMap((_, r) => [...of(i, r)])));
  }

  // the output, and the weights A[head][query][key]; letters from `n_letters` on are padding
  function attend(X, layer, n_heads, n_letters, bug) {
    const [Q, K, V] = [..."QKV"].map((name) =>
      split_heads(linear(X, layer[`W_${name}`], layer[`b_${name}`]), n_heads, bug));
    const root = Math.sqrt(Q[0][0].length);
    const hidden = bug === "mask_zero_score" ? 0 : -Infinity;
    const A = Q.map((queries, r) => {
      const S = queries.map((q) => K[r].map((k, j) =>
        j < n_letters || bug === "mask_ignored" ? dot(q, k) / root : hidden));
      return bug === "softmax_over_queries" ? turned(turned(S).map(softmax)) : S.map(softmax);
    });
    const H = A.map((rows, r) => rows.map((row) => mix(row, V[r], new Float64Array(V[r][0].length))));
    return [linear(merge_heads(H, bug), layer.W_O, layer.b_O), A];
  }

  // The score and the probability of every letter of a word, and the weights A[layer][head].
  // `length` letters come in, those behind the word are padding.
  function forward(model, word, { bug = "", length = word.length } = {}) {
    const codes = range(length).map((t) => (t < word.length ? word.charCodeAt(t) - 96 : 0));
    let X = codes.map((c, t) => model.embed[c].map((x, k) => x + model.positions[t][k]));
    const maps = [];
    for (const layer of model.layers) {
      const [Y, A] = attend(layer_norm(X, layer.gain_1, layer.bias_1), layer, model.n_heads, word.length, bug);
      X = plus(X, Y);
      const hidden = linear(layer_norm(X, layer.gain_2, layer.bias_2), layer.W_1, layer.b_1);
      X = plus(X, linear(hidden.map((x) => x.map((a) => Math.max(0, a))), layer.W_2, layer.b_2));
      maps.push(A);
    }
    const [w, [b]] = model.score;
    const scores = layer_norm(X.slice(0, word.length), ...model.final_norm).map((x) => b + dot(w, x));
    return { scores, p: softmax(scores), A: maps };
  }

  const best = (p) => p.indexOf(Math.max(...p));
  return { read, forward, best, range, LONGEST };
})();
