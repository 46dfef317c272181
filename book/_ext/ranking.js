// How the search ranks, for html_search_scorer: first the page whose title begins with
// what was typed, then a chapter before its solutions, before the entry of the glossary,
// and before the pages of the package. Sphinx puts this behind its own search.
let asked = "";
const { _parseQuery } = Search;
Search._parseQuery = (query) => {
  asked = query.trim().toLowerCase();
  return _parseQuery(query);
};
Object.assign(Scorer, {
  score([page, title, anchor, , score]) {
    const name = page.split("/").at(-1), at = title.toLowerCase().indexOf(asked);
    if (page.includes("solutions/") || page.startsWith("_modules")) return score / 4;
    if (!anchor && at >= 0 && name !== "api") return score + (at ? 50 : 100);
    if (/^\d\d_/.test(name)) return score + (anchor ? 10 : 20);
    return name === "api" || name === "glossary" ? score / 4 : score;
  },
});
