// Answers what a test asks of the model of the live encoder: JSON in, JSON out.
import { readFileSync } from "node:fs";
import { runInThisContext } from "node:vm";

const [folder] = process.argv.slice(2);
const load = (name) => runInThisContext(readFileSync(`${folder}/${name}.js`, "utf8"));
globalThis.window = globalThis; // the files are scripts of a page
load("model");
const { forward, read } = runInThisContext("stressModel");

const answers = JSON.parse(readFileSync(0, "utf8")).map(({ file, name, words, ...options }) => {
  if (name) load(name);
  try {
    const model = read(file ?? stressModels[name]);
    const began = performance.now();
    const found = words.map((word) => forward(model, word, options));
    return { found: found.map(({ p, ...rest }) => rest), ms: (performance.now() - began) / words.length };
  } catch (error) {
    return { error: error.message };
  }
});
console.log(JSON.stringify(answers, (key, x) => (x instanceof Float64Array ? [...x] : x)));
