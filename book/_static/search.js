// The search, while a reader types: in the passages that search.py has written.
(() => {
  // A chapter stands before other pages, and these before what only repeats.
  const WEIGHTS = [[/^book\/\d\d_/, 1], [/solutions/, 0.15], [/api|glossary/, 0.4]];
  const LINKS = 4; // further places of a page
  const [WIDTH, BEFORE] = [260, 140]; // letters of an excerpt, and of a first sentence
  const form = document.querySelector("form.search"), results = form.nextElementSibling;

  // The same length and one spelling, so that a place in it is one in the text.
  const spelt = (text) => text.toLowerCase().replaceAll("iz", "is");
  const bare = (text) => spelt(text).replace(/[\s-]+|s$/g, "");
  const places = PASSAGES.flatMap(([page, pageTitle, passages]) =>
    passages.map(([anchor, title, text, names]) => ({
      page, pageTitle, anchor, title, text, names,
      low: [pageTitle, title, text, names].map(spelt), bare: bare(`${title} ${text}`),
    })));
  const byPage = new Map(places.map(({ page }) => [page, []]));
  for (const place of places) byPage.get(place.page).push(place);
  const weight = (page) => WEIGHTS.find(([kind]) => kind.test(page))?.[1] ?? 0.6;
  const count = (text, pattern) => text.match(pattern)?.length ?? 0;

  // What is typed, as one pattern for each word: its beginning, in any form.
  function patterns(query) {
    const words = spelt(query).match(/[\p{L}\p{N}_]+/gu) ?? [];
    const long = words.filter((word) => word.length > 2);
    return (long.length ? long : words).map((word) => {
      const stem = word.length > 4 ? word.replace(/(ies|y|ing|ed|es|s|e)$/, "") : word;
      return new RegExp(`(?<![\\p{L}\\p{N}_])${stem}`, "gu");
    });
  }

  // How often each place has a word: a title counts as eight, and what is rare more.
  function scores(query, words) {
    const counts = words.map((word) => places.map(({ low }) => {
      const [page, title, text, names] = low.map((part) => count(part, word));
      const here = Math.min(text, 5) + Math.min(names, 1) + 8 * title;
      return here && here + 8 * page;
    }));
    const rare = counts.map((each) => each.filter(Boolean).length)
      .map((found) => Math.log(places.length / found));
    return new Map(places.map((place, at) => {
      if (!counts.every((each) => each[at])) return [place, 0];
      const sum = counts.reduce((total, each, k) => total + rare[k] * each[at], 0);
      return [place, sum + (place.bare.includes(bare(query)) ? 12 : 0)];
    }));
  }

  // One hit for each page: its best place, and the others.
  function find(query) {
    const words = patterns(query), score = scores(query, words), hits = [];
    for (const [page, all] of words.length ? byPage : []) {
      const good = all.filter((place) => score.get(place))
        .sort((a, b) => score.get(b) - score.get(a));
      if (!good.length) continue;
      const named = words.every((word) => count(all[0].low[0], word));
      const best = named ? all[0] : good[0];
      const value = weight(page) * score.get(good[0]) * (named ? 2 : 1);
      hits.push({ best, rest: good.filter((place) => place !== best), words, value });
    }
    return hits.sort((a, b) => b.value - a.value);
  }

  const element = (name, text = "", more = {}) =>
    Object.assign(document.createElement(name), { textContent: text, ...more });
  const link = ({ page, anchor }, text) => element("a", text, {
    href: `${document.documentElement.dataset.content_root}${page}.html`
      + (anchor && `#${anchor}`),
  });

  function excerpt({ text, low }, words) {
    const at = words.map((word) => low[2].search(word)).filter((place) => place >= 0);
    const first = at.length ? Math.min(...at) : 0;
    const sentence = text.lastIndexOf(". ", first) + 1;
    const whole = first - sentence < BEFORE;
    const from = whole ? sentence : text.indexOf(" ", first - BEFORE / 2);
    const cut = from + WIDTH < text.length;
    const shown = text.slice(from, from + WIDTH).replace(cut ? /\s\S*$/ : "", "").trim();
    const made = element("p", whole ? "" : "… ");
    const forms = words.map((word) => `${word.source}[\\p{L}\\p{N}]*`).join("|");
    let end = 0;
    for (const found of spelt(shown).matchAll(new RegExp(forms, "gu"))) {
      made.append(shown.slice(end, found.index));
      end = found.index + found[0].length;
      made.append(element("mark", shown.slice(found.index, end)));
    }
    made.append(shown.slice(end), cut ? " …" : "");
    return made;
  }

  function item({ best, rest, words }) {
    const made = element("li"), others = element("p", "", { className: "others" });
    const title = best.anchor ? `${best.pageTitle} › ${best.title}` : best.pageTitle;
    made.append(link(best, title), excerpt(best, words));
    const named = rest.slice(0, LINKS).map((place) => link(place, place.title));
    others.append(...named.flatMap((each) => [each, " "]));
    if (rest.length > LINKS) others.append(`and ${rest.length - LINKS} more`);
    if (rest.length) made.append(others);
    return made;
  }

  // The word of the glossary that is typed, or begun, with its definition.
  function definition(query) {
    const terms = places.filter(({ anchor }) => anchor.startsWith("term-"));
    const wanted = bare(query), begun = ({ title }) => bare(title).startsWith(wanted);
    const meant = terms.find(({ title }) => bare(title) === wanted)
      ?? (wanted.length > 3 ? terms.find(begun) : null);
    if (!query || !meant) return "";
    const made = element("p", "", { className: "meant" });
    made.append(link(meant, meant.title), `: ${meant.text}`);
    return made;
  }

  function show() {
    const query = form.q.value.trim(), hits = find(query), list = element("ol");
    const sum = hits.reduce((total, { rest }) => total + 1 + rest.length, 0);
    const number = sum ? `${sum} places on ${hits.length} pages` : "Nothing found";
    list.append(...hits.map(item));
    const status = element("p", query && number);
    status.setAttribute("role", "status");
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
