// Answers what a test asks of the scripts of the live house: JSON in, JSON out.
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [folder] = process.argv.slice(2);
const load = (name) => import(pathToFileURL(`${folder}/${name}.js`));
const { forward } = await load("model");
const { explainer } = await load("explain");
const { laws } = await load("laws");
const data = JSON.parse(readFileSync(`${folder}/house.json`, "utf8"));
const { explain } = explainer(data);

// every number of a house with its sentence and its sources, for both heads
function sentences(found, right, { bug, input: { scale } }) {
  return Object.entries(data.matrices).flatMap(([id, spec]) => {
    const each = (M, head) => M.flatMap((row, i) => row.map((x, j) => {
      const { text, sources } = explain({ found, right, bug, head, scale }, id, i, j);
      return { id, head, i, j, x: typeof x === "number" && Number.isFinite(x) ? x : String(x), text, sources };
    }));
    return spec.heads ? found[id].flatMap(each) : each(found[id], 0);
  });
}

const answers = JSON.parse(readFileSync(0, "utf8")).map((asked) => {
  const { input, bug, ask } = asked, found = forward(input, bug), right = forward(input);
  if (ask === "sentences") return sentences(found, right, asked);
  if (ask === "laws") return Object.fromEntries(Object.entries(laws).map(([name, law]) =>
    [name, law(input, bug, found, data.words, right)]));
  if (ask === "all") return found;
  const { A, D1, D2, Y, N, R, P } = found;
  return { A, D1, D2, Y, N, R, P };
});
console.log(JSON.stringify(answers));
