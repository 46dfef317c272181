// What one number is made from: a sentence with its present numbers, and its sources.
import { HEADS, differs, divisor, mean, merged, range, sees, softmax, spread, total } from "./model.js";

const minus = (text) => text.replace("-", "−");
export const ORDER = ["1st", "2nd", "3rd", "4th"];

// a number in a sentence: at most three decimals, and a power of ten where it is huge;
// so is what would look like 0 but is larger than `least`, as a weight is
export function num(x, digits = 3, least = Infinity) {
  if (Number.isNaN(x)) return "NaN";
  if (!Number.isFinite(x)) return x > 0 ? "∞" : "−∞";
  const rounded = Math.round(x * 10 ** digits) / 10 ** digits;
  if (Math.abs(x) < 1e5 && (rounded || Math.abs(x) <= least)) return minus(String(rounded + 0));
  const [digit, power] = x.toExponential(rounded ? 1 : 0).split("e");
  return `${minus(digit)}·10^${minus(power.replace("+", ""))}`;
}

// decimals for which the cells of a matrix have room; whole numbers get none
export const digits = (numbers, wide) =>
  numbers.some((x) => differs(x, Math.round(x)) && ((wide < 32 && x < -0.99) || (wide < 25 && x > 0.99))) ? 1 : 2;

// a number as its cell has room for it: 2, .57, −1.6; a small weight is not called 0
export function short(x, digits, weight = false) {
  if (!Number.isFinite(x)) return num(x);
  const size = Math.abs(x), whole = Math.abs(x - Math.round(x)) < 1e-9;
  const text = (size + 1e-9).toFixed(whole || size >= 99.95 ? 0 : size >= 9.995 ? 1 : digits);
  if (+text === 0) return weight && x > 0 ? "<.01" : "0";
  return (x < 0 ? "−" : "") + text.replace(/^0(?=\.)/, "");
}

const factor = (x, digits) => (x < 0 ? `(${num(x, digits)})` : num(x, digits));

// how a number comes about: the words after its name, and its sources [id, i, j, head]
const ways = {
  toggle: ({ x }) => [`: ${x ? "yes" : "no"}. Press Enter or click to change it.`, []],
  edit: ({ x }) => [` = ${num(x)}. Press + or −, or type a number.`, []],
  copy({ x, spec, id, i, j }) {
    const turned = id === "Kt";
    return [` = ${num(x)}, from ${spec.copy}${turned ? ", turned so that each key is a column" : ""}.`,
      [turned ? [spec.copy, j, i] : [spec.copy, i, j]]];
  },
  product({ x, spec, id, i, j, of, bug, d_k }) {
    const [left, usual] = spec.product, own = (k) => spec.head === undefined || Math.floor(k / d_k) === spec.head;
    if (usual === "W_O" && bug === "no_output_projection")
      return [` = ${num(x)}, because there is no W_O.`, own(j) ? [["C", i, j]] : []];
    const swapped = bug === "keys_and_values_swapped" && { K: "W_V", V: "W_K" }[id];
    const right = swapped || usual, row = of(left)[i], column = of(right).map((line) => line[j]), ks = range(row.length).filter(own);
    const terms = ks.map((k) => `${num(row[k])}·${factor(column[k])}`).join(" + ");
    const sum = num(total(ks.map((k) => row[k] * column[k])));
    return [spec.relu ? ` = max(0, ${terms}) = max(0, ${sum}) = ${num(x)}.` : ` = ${terms} = ${num(x)}.`,
      ks.flatMap((k) => [[left, i, k], [right, k, j]])];
  },
  sum({ x, spec, i, j, of, bug }) {
    const [old, fresh, sum] = spec.sum, down = bug === "norm_over_tokens";
    const lone = old === "X" && bug === "no_residual", R = of(sum), y = num(of(fresh)[i][j]);
    const line = down ? range(R.length).map((k) => [k, j]) : range(R[0].length).map((k) => [i, k]);
    const numbers = line.map(([a, b]) => R[a][b]);
    const added = lone ? `${y}, nothing is added` : `${num(of(old)[i][j])} + ${factor(of(fresh)[i][j])} = ${num(R[i][j])}`;
    const normed = `(${num(R[i][j])} − ${factor(mean(numbers))}) / ${num(spread(numbers))} = ${num(x)}`;
    return [`: ${added}; then ${normed}, with mean and standard deviation of this ${down ? "column" : "row"}.`,
      line.flatMap(([a, b]) => (lone ? [[fresh, a, b]] : [[old, a, b], [fresh, a, b]]))];
  },
  T({ x, i, j, of, bug, scale, d_k }) {
    const by = divisor(d_k, bug, scale), s = num(of("S")[i][j]), model = bug === "scale_sqrt_d_model";
    if (by === 1) return [` = ${s}, not divided.`, [["S", i, j]]];
    return [` = ${s} / √${num(by * by)}${model ? " (√d_model)" : ""} = ${num(x)}.`, [["S", i, j]]];
  },
  M({ i, j, of, bug }) {
    const mask = of("mask"), t = num(of("T")[i][j]);
    const why = bug === "mask_inverted" ? ", because True and False are exchanged in this mask"
      : bug === "mask_after_softmax" && !mask[i][j] ? ", because this mask comes after the softmax" : "";
    const text = sees(mask, i, j, bug) ? ` = ${t}, not hidden${why}.` : ` = −∞, hidden${why}.`;
    return [text, [["T", i, j], ["mask", i, j]]];
  },
  A({ x, i, j, of, bug, scale, d_k, ids }) {
    const M = of("M"), down = bug === "softmax_over_queries";
    const line = range(M.length).map((k) => (down ? [k, j] : [i, k]));
    const scores = line.map(([a, b]) => M[a][b]), sources = line.map(([a, b]) => ["M", a, b]);
    if (bug === "mask_after_softmax" && !of("mask")[i][j])
      return [` = ${num(softmax(scores)[j])}·0 = 0, set to 0 after the softmax.`, [...sources, ["mask", i, j]]];
    if (scores.every((s) => s === -Infinity)) return [" = 0, because its whole row is hidden.", sources];
    const powers = scores.map(Math.exp), sum = total(powers);
    if (sum === Infinity || sum < 1e-9)
      return [` = ${num(x, 3, 0)}, the softmax of ${scores.map((s) => num(s)).join(", ")}.`, sources];
    const parts = powers.map((p) => num(p, p < 0.095 ? 3 : 1)).join(" + ");
    const by = divisor(d_k, bug, scale), divided = by === 1 || ["M", "T"].some((id) => ids.includes(id));
    const power = divided ? factor(M[i][j]) : `(${num(of("S")[i][j])}/√${num(by * by)})`;
    const own = M[i][j] === -Infinity ? "0" : `e^${power}`;
    return [` = ${own} / (${parts}) = ${num(x, 3, 0)}${down ? ", down the column" : ""}.`, sources];
  },
  C({ x, i, j, of, bug, d_k, words }) {
    const [r, t, c] = merged(i, j, words.length, d_k, bug);
    return [` = ${num(x)}, from head ${r + 1}: “${words[t]}”, ${ORDER[c]} number.`, [["H", t, c, r]]];
  },
};

export function explainer({ words, features, matrices, given = [] }) {
  const joined = range(features.length).map((j) => {
    const [r, , c] = merged(0, j, words.length, features.length / HEADS);
    return `head ${r + 1}, ${ORDER[c]} number`;
  });
  const quoted = words.map((w) => `“${w}”`); // “it” is no pronoun here
  const names = { words: quoted, features, joined, numbers: ORDER };
  const edits = (id) => matrices[id].edit || given.includes(id);

  function name(id, i, j) {
    const { name, rows, cols } = matrices[id];
    const words = { row: names[rows][i], col: names[cols][j], i: i + 1, j: j + 1 };
    return name.replace(/{(\w+)}/g, (_, key) => words[key]);
  }

  // `found` are all numbers, `right` those without the bug; `ids` are the matrices in sight
  function explain({ found, right, bug, head, scale, ids = Object.keys(found) }, id, i, j) {
    const spec = matrices[id];
    const of = (id) => (matrices[id]?.heads ? found[id][head] : found[id]);
    const x = of(id)[i][j], d_k = found.Q[0][0].length;
    const kind = edits(id) ? "edit" : ["toggle", "copy", "product", "sum"].find((key) => spec[key]) ?? id;
    const [how, sources] = ways[kind]({ x, spec, id, i, j, of, bug, scale, d_k, words, ids });
    const due = (spec.heads ? right[id][head] : right[id])[i][j];
    const wrong = differs(x, due) ? ` Correct would be ${num(due)}.` : "";
    const text = `${name(id, i, j)}${how}${wrong}`;
    return { text: text[0].toUpperCase() + text.slice(1), sources };
  }
  return { explain, name, edits };
}
