// How the search ranks, for html_search_scorer: a chapter before its solutions, before
// the entry of the glossary, and before the pages of the package.
var Scorer = {
  objNameMatch: 11,
  objPartialMatch: 2,
  objPrio: { 0: 2, 1: 1, 2: -5 },
  objPrioDefault: 0,
  title: 40,
  partialTitle: 15,
  term: 5,
  partialTerm: 2,
  score([page, , anchor, , score]) {
    const name = page.split("/").at(-1);
    if (page.includes("solutions/") || page.startsWith("_modules")) return score / 4;
    if (/^\d\d_/.test(name)) return score + (anchor ? 10 : 20);
    return name === "api" || name === "glossary" ? score / 4 : score;
  },
};
