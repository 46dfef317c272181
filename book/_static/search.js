// The search, while a reader types: in the passages that search.py has written.
(() => {
  // A chapter stands before other pages, and these before what only repeats.
  const WEIGHTS = [[/^book\/\d\d_/, 1], [/solutions/, 0.15], [/api|glossary/, 0.4]];
  const [WIDTH, BEFORE, LINKS] = [260, 140, 4]; // letters of an excerpt; further places
  const form = document.querySelector("form.search"), results = form.nextElementSibling;
  const root = document.documentElement.dataset.content_root;

  // The same length and one spelling, so that a place in it is one in the text.
  const spelt = (text) => text.toLowerCase().replaceAll("iz", "is");
  const bare = (text) => spelt(text).replace(/[\s-]+|s$/g, "");
  const weight = (page) => WEIGHTS.find(([kind]) => kind.test(page))?.[1] ?? 0.6;
  const count = (text, word) => text.match(word)?.length ?? 0;
  const element = (name, text = "", more = {}) =>
    Object.assign(document.createElement(name), { textContent: text, ...more });
  const link = ({ page, anchor }, text) =>
    element("a", text, { href: `${root}${page}.html${anchor && "#"}${anchor}` });

  const places = PASSAGES.flatMap(([page, whole, passages]) =>
    passages.map(([anchor, title, text, names]) => ({
      page, whole, anchor, title, text: ` ${text} `, names,
      bare: bare(`${title} ${text}`),
      low: [whole, title, ` ${text} `, names].map(spelt),
    })));

  // What is typed, as one pattern for each word: its beginning, in any form.
  function patterns(query) {
    const words = spelt(query).match(/[\p{L}\p{N}_]+/gu) ?? [];
    const long = words.filter((word) => word.length > 2);
    return (long.length ? long : words).map((word) => {
      const stem = word.length > 4 ? word.replace(/(ies|y|ing|ed|es|s|e)$/, "") : word;
      return new RegExp(`(?<![\\p{L}\\p{N}_])${stem}`, "gu");
    });
  }

  // The places that have every word. A title counts as eight uses, a rare word more.
  function scored(query, words) {
    const uses = words.map((word) => places.map(({ low }) => {
      const [whole, title, text, names] = low.map((part) => count(part, word));
      const here = Math.min(text, 5) + Math.min(names, 1) + 8 * title;
      return here && here + 8 * whole;
    }));
    const share = (each) => each.filter(Boolean).length / places.length;
    const rare = uses.map((each) => -Math.log(share(each)));
    const found = places.map((place, at) => ({
      ...place, score: uses.reduce((sum, each, k) => sum + rare[k] * each[at], 0)
        + (place.bare.includes(bare(query)) ? 12 : 0),
    }));
    return found.filter((place, at) => uses.every((each) => each[at]));
  }

  // One hit for each page: its best place, or the page that is named, and the others.
  function find(query) {
    const words = patterns(query), pages = new Map();
    for (const place of words.length ? scored(query, words) : [])
      pages.set(place.page, [...pages.get(place.page) ?? [], place]);
    const hits = [...pages].map(([page, found]) => {
      found.sort((a, b) => b.score - a.score);
      const named = words.every((word) => count(found[0].low[0], word));
      const sums = found.find(({ anchor }) => anchor === "what-you-can-now-say");
      const said = named && sums || found[0], value = weight(page) * found[0].score;
      const best = named ? { ...said, anchor: "" } : said;
      const rest = found.filter((place) => place !== said);
      return { best, rest, words, value: named ? 2 * value : value };
    });
    return hits.sort((a, b) => b.value - a.value);
  }

  function excerpt({ text, names, low }, words) {
    if (!text.trim()) return element("p", names.slice(0, WIDTH));
    const first = words.map((word) => low[2].search(word)).find((at) => at >= 0) ?? 0;
    const from = Math.max(text.lastIndexOf(". ", first) + 1, first - BEFORE);
    const shown = text.slice(from, from + WIDTH).replace(/^\S+|\S+$/g, "… ").trim();
    const forms = words.map((word) => `${word.source}[\\p{L}\\p{N}]*`).join("|");
    const made = element("p");
    let end = 0;
    for (const found of spelt(shown).matchAll(new RegExp(forms, "gu"))) {
      made.append(shown.slice(end, found.index));
      end = found.index + found[0].length;
      made.append(element("mark", shown.slice(found.index, end)));
    }
    made.append(shown.slice(end));
    return made;
  }

  function item({ best, rest, words }) {
    const made = element("li"), others = element("p", "", { className: "others" });
    const title = best.anchor ? `${best.whole} › ${best.title}` : best.whole;
    made.append(link(best, title), excerpt(best, words), others);
    for (const at of rest.slice(0, LINKS)) others.append(link(at, at.title), " ");
    others.append(rest.length > LINKS ? `and ${rest.length - LINKS} more` : "");
    return made;
  }

  // The word of the glossary that is typed, or begun, with its definition.
  function definition(query) {
    const terms = places.filter(({ anchor }) => anchor.startsWith("term-"));
    const wanted = bare(query), begun = ({ title }) => bare(title).startsWith(wanted);
    const meant = terms.find(({ title }) => bare(title) === wanted)
      ?? (wanted.length > 3 ? terms.find(begun) : null);
    if (!meant) return "";
    const made = element("p", "", { className: "meant" });
    made.append(link(meant, meant.title), `: ${meant.text}`);
    return made;
  }

  function show() {
    const query = form.q.value.trim(), hits = find(query), list = element("ol");
    const sum = hits.reduce((total, { rest }) => total + 1 + rest.length, 0);
    const number = sum ? `${sum} places on ${hits.length} pages` : "Nothing found";
    list.append(...hits.map(item));
    const status = element("p", query && number, { role: "status" });
    results.replaceChildren(status, definition(query), list);
    history.replaceState(null, "", `?q=${encodeURIComponent(query)}`);
  }

  form.q.value = new URLSearchParams(location.search).get("q") ?? "";
  form.addEventListener("submit", (event) => event.preventDefault());
  form.q.addEventListener("input", show);
  results.addEventListener("click", () => { // what the page that opens will mark
    localStorage.setItem("sphinx_highlight_terms", form.q.value.trim().toLowerCase());
  });
  show();
})();
