// The nine steps, one at a time; choose a number and read how it came about.
const { tokens, n_heads, causal, X, W, P, Q, K, V, S, scaled, A, H, C, Y } = data;
const CLOSED = "−∞";
const brief = (x) => (x === null ? CLOSED : Math.abs(x - Math.round(x)) < 1e-4 ? show(x, 0) : show(x));
const column = (M, c) => M.map((row) => row[c]);
const dot = (a, b) => a.map((x, l) => `${brief(x)}·${brief(b[l])}`).join(" + ");
const each = (make) => Array.from({ length: n_heads }, (_, r) => make(r));
const d_k = Q[0][0].length, root_d = Math.sqrt(d_k);
const head = (name, r) => `${name} of head ${r}`;
const product = (name, M, from, by, title) => ({
  title, M, why: (i, c) => `${name}[${i}, ${c}] = ${dot(from[i], column(by, c))} = ${brief(M[i][c])}`,
});
const cutting = (name, M, r) => ({
  title: head(name, r), M: M[r], r,
  why: (i, c) => `column ${c} of head ${r} is column ${r * M[r][0].length + c} of ${name}`,
});
const STEPS = [
  ["1. Tokens, one a row", [{ title: "X", M: X, why: (i, c) => `feature ${c} of ${word(tokens[i])}: ${brief(X[i][c])}` }]],
  ["2. Four matrices, learned", Object.entries(W).map(([name, M]) => ({
    title: name, M, plain: true, why: (i, c) => `${name}[${i}, ${c}] = ${brief(M[i][c])}` }))],
  ["3. Rows times columns: Q, K, V", Object.entries(P).map(([name, M]) => product(name, M, X, W[`W_${name}`], name))],
  ["4. Cut into heads", each((r) => [cutting("Q", Q, r), cutting("K", K, r), cutting("V", V, r)]).flat()],
  ["5. Scores, divided by √d_k", each((r) => ({ title: head("scores", r), M: S[r], keys: true, r,
    why: (i, j) => `(${dot(Q[r][i], K[r][j])}) / √${d_k} = ${brief(S[r][i][j])}` }))],
  ["6. The mask", each((r) => ({ title: head("masked scores", r), M: scaled[r], keys: true, r,
    why: (i, j) => (scaled[r][i][j] === null ? `${word(tokens[j])} comes after ${word(tokens[i])}: closed`
      : causal ? `${word(tokens[j])} does not come after ${word(tokens[i])}: open` : "nothing is masked") }))],
  ["7. Softmax, row by row", each((r) => ({ title: head("weights A", r), M: A[r], keys: true, r,
    why: (i, j) => scaled[r][i][j] === null ? `e to the power of ${CLOSED} is 0`
      : `e^${brief(scaled[r][i][j])} / (${scaled[r][i].filter((s) => s !== null).map((s) => `e^${brief(s)}`).join(" + ")}) = ${brief(A[r][i][j])}` }))],
  ["8. What each head brings home: A V", each((r) => ({ title: head("A V", r), M: H[r], r,
    why: (i, c) => `${dot(A[r][i], column(V[r], c))} = ${brief(H[r][i][c])}` }))],
  ["9. Side by side, times W_O", [
    { title: "side by side", M: C, why: (i, c) => `column ${c % H[0][0].length} of head ${Math.floor(c / H[0][0].length)}` },
    product("Y", Y, C, W.W_O, "Y")]],
];
const title = html("b", { class: "step", tabindex: -1 });
const tables = html("div", { class: "tables" });
let at = 0;

function drawn({ title: name, M, plain, keys, r, why }) {
  const cells = M.map((row, i) => row.map((x, c) => {
    const cell = html("button", { type: "button", class: r === undefined ? "" : `head${r % 2}` }, brief(x));
    cell.addEventListener("focus", () => say(why(i, c)));
    cell.addEventListener("click", () => say(why(i, c)));
    return cell;
  }));
  arrows(cells.flat(), M[0].length);
  const top = keys ? [html("tr", {}, html("td", {}), ...tokens.map((t) => html("th", { scope: "col" }, t)))] : [];
  return html("table", {}, html("caption", {}, name), ...top, ...cells.map((row, i) => html("tr", {},
    plain ? null : html("th", { scope: "row" }, tokens[i]), ...row.map((cell) => html("td", {}, cell)))));
}

function go(to) {
  at = clamp(to, 0, STEPS.length - 1);
  const [name, all] = STEPS[at];
  title.textContent = name;
  tables.replaceChildren(...all.map(drawn));
  back.disabled = at === 0;
  next.disabled = at === STEPS.length - 1;
  note("numbers", all.map(({ M }) => M).flat(Infinity).filter((x) => x !== null));
  root.dataset.step = at + 1;
  say("Choose a number to see how it comes about.");
}
const back = html("button", { type: "button", onclick: () => go(at - 1) }, "← back");
const next = html("button", { type: "button", onclick: () => go(at + 1) }, "next →");
mount(html("div", { class: "walk" }, back, title, next), tables);
go(0);
