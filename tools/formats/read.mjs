// Reads files with js-yaml 4 and 5 and prints one line of JSON per file and reader: node read.mjs FILE…
import { readFileSync } from "node:fs";

const modules = { "js-yaml-4": await import("js-yaml-4"), "js-yaml-5": await import("js-yaml-5") };

for (const file of process.argv.slice(2)) {
  const text = readFileSync(file, "utf8");
  for (const [reader, module] of Object.entries(modules)) {
    const { loadAll } = module.default ?? module;
    const result = { file, reader, documents: [] };
    try {
      result.documents = loadAll(text);
    } catch (error) {
      result.error = error.message;
    }
    console.log(JSON.stringify(result));
  }
}
