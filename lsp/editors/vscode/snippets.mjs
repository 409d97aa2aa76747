// Writes snippets/dogwood.json: the idioms that the language server completes, for editing without it.

import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";

const here = path.dirname(fileURLToPath(import.meta.url));
export const target = path.join(here, "snippets/dogwood.json");

const one = /Idiom \{\s*label: "((?:[^"\\]|\\.)*)",\s*about: "((?:[^"\\]|\\.)*)",\s*body: r(#+)"([\s\S]*?)"\3,\s*\}/g;

/** The snippets of VS Code, made of the list in the source of the server. */
export function snippets() {
  const source = readFileSync(path.join(here, "../../src/feature/completion/idioms.rs"), "utf8");
  const found = {};
  for (const [, label, about, , body] of source.matchAll(one)) {
    found[JSON.parse(`"${label}"`)] = {
      prefix: JSON.parse(`"${label}"`),
      description: JSON.parse(`"${about}"`),
      body: body.split("\n"),
    };
  }
  return `${JSON.stringify(found, null, 2)}\n`;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  writeFileSync(target, snippets());
}
