// How results are ranked: first the chapter that is about the words, by its title, its
// headings and its uses of them, then the glossary's entry, then headings, then all pages
// that use the words, then names of the package. Sphinx puts this text behind its own
// search, and calls it with an index that search.py has added to.
// What Sphinx puts right before it ends without a semicolon.
;(() => {
  const TITLE = 2000, LEAD = 1000, ENTRY = 900, HEADING = 500; // steps of the order
  const LEADS = 3, CLOSE = 0.7; // chapters that may come first, if nearly as good
  const MOST = 2; // headings shown of one page
  const SHOWN = 25; // results: whoever needs more had better type another word
  const NAME = 100; // a name of the package comes last, unless it is what was asked for
  const stemmer = new Stemmer();
  const stem = (word) => stemmer.stemWord(word.toLowerCase());
  const stems = (text) => splitQuery(text.replace(/<[^>]*>/g, " ")).map(stem);
  const isChapter = (name) => /(^|\/)\d\d_/.test(name) && !name.includes("solutions/");

  // book/07_split -> ["split"]: what a page is called is in its address too.
  const nameOf = (name) => name.split("/").at(-1).replace(/^\d+_/, "");
  const called = (name, words, query) =>
    nameOf(name) === query.replace(/\W+/g, "")
    || words.every((word) => nameOf(name).split("_").map(stem).includes(word));

  // A word in the forms that the index holds: itself, and what it is a part of.
  function forms(word) {
    const { terms, titleterms } = Search._index;
    const all = [...Object.keys(terms), ...Object.keys(titleterms)];
    const longer = word.length < 3 ? [] : all.filter((each) => each.includes(word));
    const share = all.includes(word) ? 0.3 : 0.6;
    return new Map([...longer.map((each) => [each, share]), [word, 1]]);
  }

  // How often each page uses a word: a number for each page of the index.
  function uses(word) {
    const { docnames, terms, titleterms, times } = Search._index;
    const found = docnames.map(() => 0);
    for (const [form, share] of forms(word)) {
      const own = (table) => (Object.hasOwn(table, form) ? [table[form]].flat() : []);
      const often = new Map();
      for (const page of [...own(terms), ...own(titleterms)]) often.set(page, 1);
      const more = own(times ?? {});
      for (let i = 0; i < more.length; i += 2) often.set(more[i], more[i + 1]);
      for (const [page, count] of often) found[page] += share * count;
    }
    return found;
  }

  // Rare words count more, and a hundred uses not much more than fifty.
  function weigh(words) {
    const { docnames } = Search._index;
    const table = words.map(uses);
    const rarity = table.map((row) =>
      Math.log(1 + docnames.length / (1 + row.filter((count) => count >= 1).length)));
    return docnames.map((_, page) => {
      const counts = table.map((row) => row[page]);
      const sum = counts.reduce((all, n, i) => all + rarity[i] * Math.log2(1 + n), 0);
      return { all: counts.every((n) => n > 0), any: counts.some((n) => n > 0), sum };
    });
  }

  const holds = (text, words) => {
    const there = stems(text);
    return words.every((word) => there.includes(word));
  };
  // A short heading is more about a word than a long one.
  const focus = (text, words) => words.length / Math.max(1, stems(text).length);

  // The titles of pages in letters: where one has a formula, `titles` holds drawn signs.
  function inLetters() {
    const { titles, alltitles } = Search._index;
    const plain = [...titles];
    for (const [text, places] of Object.entries(alltitles))
      for (const [page, id] of places) if (!id) plain[page] = text;
    return plain;
  }

  function headings(words) {
    const { alltitles } = Search._index, titles = inLetters();
    const found = [];
    for (const [text, places] of Object.entries(alltitles))
      if (holds(text, words))
        for (const [page, id] of places)
          if (id && holds(titles[page], stems(text)) === false)
            found.push({ page, text, id, focus: focus(text, words) });
    return found.sort((a, b) => b.focus - a.focus);
  }

  function rank(query, terms, excluded) {
    const { docnames, filenames, titles, indexentries } = Search._index;
    const words = [...terms], results = [], plain = inLetters();
    if (!words.length) return results;
    const weights = weigh(words), below = headings(words);
    const strict = weights.some(({ all }) => all);
    const without = [...excluded].map(uses);
    const add = (page, title, anchor, score) =>
      without.every((row) => !row[page]) && results.push(
        [docnames[page], title, anchor, null, score, filenames[page]]);

    const strength = weights.map(({ sum, all, any }, page) => {
      const here = below.filter((heading) => heading.page === page).slice(0, 3);
      const more = here.reduce((all, heading) => all + 0.4 + 0.4 * heading.focus, 1);
      return (strict ? all : any) ? sum * more : 0;
    });
    const chapters = docnames.map((name) => isChapter(name));
    const best = strength.filter((_, page) => chapters[page]).sort((a, b) => b - a);
    strength.forEach((own, page) => {
      const ahead = chapters[page] && own >= CLOSE * best[0] && own >= (best[LEADS - 1] ?? 0);
      const named = called(docnames[page], words, query.toLowerCase());
      const titled = named || holds(plain[page], words);
      const about = !titled ? 0
        : TITLE * (0.5 + 0.5 * Math.max(named, chapters[page]))
          + LEAD * focus(named ? nameOf(docnames[page]).replace(/_/g, " ") : plain[page], words);
      if (own || titled) add(page, titles[page], "", own + (about || (ahead ? LEAD : 0)));
    });
    for (const [entry, places] of Object.entries(indexentries))
      if (holds(entry, words) && focus(entry, words) === 1)
        for (const [page, id] of places)
          add(page, `${titles[page]} > ${entry}`, id ? `#${id}` : "", ENTRY);
    const shown = new Map();
    for (const { page, text, id, focus } of below) {
      shown.set(page, (shown.get(page) ?? 0) + 1);
      const chapter = chapters[page] ? 100 : 0;
      if (shown.get(page) <= MOST)
        add(page, `${titles[page]} > ${text}`, `#${id}`,
            HEADING + chapter + 100 * focus + strength[page]);
    }
    return results;
  }

  Search._performSearch = (query, terms, excluded, highlighted, objects) => {
    const names = [...objects].flatMap((word) =>
      Search.performObjectSearch(word, objects));
    for (const name of names) {
      const last = name[1].toLowerCase().split(".").at(-1);
      name[4] += last === query.trim().toLowerCase() ? HEADING : NAME / 10;
    }
    const results = [...rank(query, terms, excluded), ...names];
    results.sort(_orderResultsByScoreThenName); // the last is shown first
    return results.slice(-SHOWN);
  };

  // What is quoted from a page: its text, without its contents, code bars and formulas.
  const UNQUOTED = ".headerlink, script, style, summary, mjx-container, .takes";
  const parsed = new Map(); // a page has several results
  function article(html) {
    const page = new DOMParser().parseFromString(html, "text/html");
    const text = page.querySelector("article") ?? page.body;
    text.querySelectorAll(UNQUOTED).forEach((node) => node.remove());
    return text;
  }
  Search.htmlToText = (html, anchor) => {
    if (!parsed.has(html)) parsed.set(html, article(html));
    const text = parsed.get(html), part = anchor && text.querySelector(anchor);
    const found = part?.closest("dt")?.parentNode ?? part ?? text;
    return found.textContent.replace(/\s+/g, " ");
  };

  // From the file system no page may read another one to quote it.
  if (location.protocol === "file:") DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;
})();
