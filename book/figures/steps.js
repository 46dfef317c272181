// The nine steps, one at a time. A product lies as on paper: its left factor to the left,
// its right factor above, so that a number is where its row and its column cross.
const { tokens, n_heads, X, W, P, Q, K, V, S, A, H, C, Y } = data;
const CLOSED = "−∞", FIRST = 3;
const brief = (x) => (x === null ? CLOSED : Math.abs(x - Math.round(x)) < 1e-4 ? show(x, 0) : show(x));
// W_Q with its letter below
const low = (name) => name.split("_").map((part, k) => (k ? html("sub", {}, part) : part));
const column = (M, c) => M.map((row) => row[c]);
const flip = (M) => M[0].map((_, c) => column(M, c));
const dot = (a, b) => a.map((x, l) => `${brief(x)}·${brief(b[l])}`).join(" + ");
const each = (make) => Array.from({ length: n_heads }, (_, r) => make(r));
const of = (name, r) => (n_heads > 1 ? name + (n_heads < 10 ? String.fromCharCode(0x2081 + r) : ` ${r + 1}`) : name);
const d_k = Q[0][0].length, d_v = V[0][0].length;
const ROLES = { Q: "query", K: "key", V: "value" };

// a matrix to draw: its rows and columns have words, or none; `map` paints weights
const matrix = (name, M, role, more = {}) => ({ name, M, role, ...more });
const input = () => matrix("X", X, "ink", { rows: tokens });
const learned = (name, role) => matrix(name, W[name], role);
// a block: what is made, from what, which cells light up, and the sum in words
const row = (i) => ([a]) => a === i, col = (c) => ([, b]) => b === c, one = (i, c) => ([a, b]) => a === i && b === c;
const product = (made, left, top, say) => ({ made, left, top, lit: (i, c) => [row(i), col(c)], say });
const copied = (made, top, lit, say) => ({ made, top, lit: (i, c) => [null, lit(i, c)], say });
const cellOf = (name, i, c, r) => `${word(tokens[i])} in column ${c + 1} of ${r === undefined ? name : of(name, r)}${n_heads > 1 && r !== undefined ? ` (head ${r + 1})` : ""}`;

const STEPS = [
  ["Tokens, one per row", [{ made: input(), lit: () => [], say: (i, c) => `${cellOf("X", i, c)}: ${brief(X[i][c])}, given.` }]],
  ["Four matrices, learned", ["Q", "K", "V", "O"].map((name) => ({ made: learned(`W_${name}`, ROLES[name] || "output"), lit: () => [],
    say: (i, c) => `row ${i + 1}, column ${c + 1} of W_${name}: ${brief(W[`W_${name}`][i][c])}, learned.` }))],
  ["Rows times columns: Q, K, V", Object.keys(P).map((name, k) => product(
    matrix(name, P[name], ROLES[name]), input(), learned(`W_${name}`, ROLES[name]),
    (i, c) => `${cellOf(name, i, c)}: ${dot(X[i], column(W[`W_${name}`], c))} = ${brief(P[name][i][c])}`))],
  ["Split into heads", Object.entries({ Q, K, V }).map(([name, parts]) => ({
    top: matrix(name, P[name], ROLES[name], { rows: name === "Q" ? tokens : null }),
    made: each((r) => matrix(of(name, r), parts[r], ROLES[name], { rows: name === "Q" && !r ? tokens : null })),
    lit: (i, c, r) => [null, one(i, r * parts[0][0].length + c)],
    say: (i, c, r) => `${cellOf(name, i, c, r)} is column ${r * parts[0][0].length + c + 1} of ${name}: ${brief(parts[r][i][c])}` }))],
  ["Scores: Q Kᵀ, divided by √dₖ", each((r) => product(
    matrix(of("S", r), S[r], "ink"), matrix(of("Q", r), Q[r], "query", { rows: tokens }), matrix(`${of("K", r)}ᵀ`, flip(K[r]), "key", { columns: tokens }),
    (i, j) => `score of ${word(tokens[i])} with ${word(tokens[j])}${n_heads > 1 ? ` in head ${r + 1}` : ""}: (${dot(Q[r][i], K[r][j])}) / √${d_k} = ${brief(S[r][i][j])}`))],
  ["The mask", each((r) => copied(matrix(`${of("S", r)} masked`, S[r], "ink", { rows: tokens }),
    matrix(of("S", r), S[r], "ink", { rows: tokens, columns: tokens }), one,
    (i, j) => `Nothing is masked: it stays ${brief(S[r][i][j])}`))],
  ["Softmax, row by row", each((r) => copied(matrix(of("A", r), A[r], "weight", { rows: tokens, map: true }),
    matrix(`${of("S", r)} masked`, S[r], "ink", { rows: tokens, columns: tokens }), (i) => row(i),
    (i, j) => `${word(tokens[i])} attends to ${word(tokens[j])}: `
      + `e^${brief(S[r][i][j])} / (${S[r][i].map((s) => `e^${brief(s)}`).join(" + ")}) = ${brief(A[r][i][j])}`))],
  ["Weighted averages: A times V", each((r) => product(
    matrix(of("H", r), H[r], "output"), matrix(of("A", r), A[r], "weight", { rows: tokens, map: true }), matrix(of("V", r), V[r], "value"),
    (i, c) => `${cellOf("H", i, c, r)}: ${dot(A[r][i], column(V[r], c))} = ${brief(H[r][i][c])}`))],
  ["Concatenate, and times W_O", [product(matrix("Y", Y, "output"), matrix("C", C, "output", { rows: tokens, cut: d_v }), learned("W_O", "output"),
    (i, c) => `${cellOf("Y", i, c)}: ${dot(C[i], column(W.W_O, c))} = ${brief(Y[i][c])}`)]],
];

function table({ name, M, role, rows, columns, map, cut: width }, tag) {
  const cells = M.map((line) => line.map((x, c) => {
    const cell = html(tag, { class: width && c && c % width === 0 ? "cut" : "", ...(tag === "button" ? { type: "button" } : {}) }, brief(x));
    if (map) tint(cell, x);
    return cell;
  }));
  const head = columns ? [html("tr", {}, rows ? html("td", {}) : null, ...columns.map((t) => html("th", { scope: "col" }, cut(t, 6))))] : [];
  return { cells, node: html("table", { class: role }, html("caption", {}, ...low(name)), ...head, ...cells.map((line, i) => html("tr", {},
    rows ? html("th", { scope: "row" }, rows[i]) : null, ...line.map((cell) => html("td", {}, cell))))) };
}

const room = (lengths) => `${0.6 * Math.max(...lengths) + 0.4}em`; // for the longest number

// all steps lie in one place, so the tallest sets the height and nothing jumps
let longest = "";
const stages = STEPS.map(([, blocks], at) => {
  const order = [];
  const nodes = blocks.map(({ made, left, top, lit, say: why }, k) => {
    const shared = at === 2 && k > 0; // X stands at the left once
    const from = [left && (shared ? null : table(left, "span")), top && table(top, "span")];
    if (left && !shared) blocks.left = from[0];
    if (shared) from[0] = blocks.left;
    else if (left) from[0].node.style.setProperty("--wide", room(left.M.flat().map((x) => brief(x).length)));
    const results = [made].flat().map((one) => table({ ...one, rows: left ? null : one.rows }, "button"));
    results.forEach(({ cells }, r) => cells.forEach((line, i) => line.forEach((cell, c) => {
      (order[i] ||= []).push(cell);
      const choose = () => {
        root.querySelectorAll(".lit, .on").forEach((node) => node.classList.remove("lit", "on"));
        cell.classList.add("on");
        lit(i, c, r).forEach((is, side) => is && from[side]?.cells.forEach((line, a) => line.forEach((node, b) => node.classList.toggle("lit", is([a, b])))));
        check(at, cell);
        say(why(i, c, r));
      };
      if (why(i, c, r).length > longest.length) longest = why(i, c, r);
      cell.addEventListener("focus", choose);
      cell.addEventListener("click", choose);
    })));
    return html("div", { class: `block${left && !shared ? " two" : ""}` }, top ? html("div", { class: "above" }, from[1].node) : null,
      left && !shared ? html("div", { class: "left" }, from[0].node) : null, html("div", { class: "made" }, ...results.map(({ node }) => node)));
  });
  const flat = order.flat(), best = order.at(-1)[0];
  arrows(flat, order[0].length)(flat.indexOf(best));
  // columns of one width, so that a product is exactly below and beside its factors
  const cells = nodes.flatMap((node) => [...node.querySelectorAll("td > *")]);
  return { node: html("div", { class: "stage", style: `--wide: ${room(cells.map((cell) => cell.textContent.length))}` }, ...nodes), best, flat };
});

const check = (at) => aim(at === 8 ? `${C[0].length} products, each with a number of every head that came before.`
  : "Not there yet.", at === 8);

// what each step leaves behind, in small; the nine are also the way from step to step
const small = STEPS.map(([name, blocks], k) => html("button", { type: "button", "aria-label": `step ${k + 1}: ${name}` },
  html("span", {}, k + 1), html("div", { "aria-hidden": true }, ...blocks.flatMap(({ made }) => made).map(({ M, role }) => {
    const most = Math.max(...M.flat().map((x) => Math.abs(x ?? 0))) || 1;
    return svg("svg", { viewBox: `0 0 ${M[0].length} ${M.length}`, style: `width: ${5 * M[0].length}px; height: ${5 * M.length}px` },
      ...M.flatMap((line, i) => line.map((x, c) => x && svg("rect", { x: c, y: i, width: 1, height: 1, fill: `var(--${role})`, "fill-opacity": 0.15 + (0.85 * Math.abs(x)) / most }))).filter(Boolean),
      svg("rect", { width: M[0].length, height: M.length, fill: "none", stroke: `var(--${role})`, "stroke-width": 1, "vector-effect": "non-scaling-stroke" }));
  }))));
const title = html("b", { class: "step" });
let at = 0, reached = 0;

function go(to) {
  at = to;
  reached = Math.max(reached, at);
  title.replaceChildren(...low(`${at + 1}. ${STEPS[at][0]}`));
  stages.forEach(({ node }, k) => node.classList.toggle("here", k === at));
  small.forEach((node, k) => {
    node.classList.toggle("later", k > reached);
    node.setAttribute("aria-pressed", k === at);
  });
  back.disabled = at === 0;
  next.disabled = at === STEPS.length - 1;
  note("numbers", STEPS[at][1].flatMap(({ made }) => made).map(({ M }) => M).flat(Infinity).filter((x) => x !== null));
  root.dataset.step = at + 1;
  stages[at].best.click();
}
const back = html("button", { type: "button", onclick: () => pick(at - 1) }, "← back");
const next = html("button", { type: "button", onclick: () => pick(at + 1) }, "next →");
const pick = roving(small, go);
mount("how many products are behind one number of Y? Guess, then choose one in step 9.",
  html("div", { class: "map", role: "group", "aria-label": "the nine steps" }, ...small),
  html("div", { class: "walk" }, back, title, next), html("div", { class: "stages" }, ...stages.map(({ node }) => node)),
  html("p", { class: "ghost", "aria-hidden": true }, longest)); // it keeps the room for the longest sentence
pick(FIRST - 1);
