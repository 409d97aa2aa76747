// The snippets are those of the server, and good policies.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { snippets, target } from "../snippets.mjs";
import { meaning, tokenize } from "./tokenize.mjs";

const kept = readFileSync(target, "utf8");

test("the snippets are the idioms of the server", () => {
  assert.equal(kept, snippets(), "`npm run snippets` writes what the server has now");
});

test("there is one for each of the things people ask for first", () => {
  const labels = Object.keys(JSON.parse(kept));
  for (const label of ["push gate", "cap per hour", "budget", "no http after read"]) {
    assert.ok(labels.includes(label), `${label} is none of ${labels}`);
  }
});

test("filled in, each is a finished rule", async () => {
  for (const [label, { body }] of Object.entries(JSON.parse(kept))) {
    const filled = body.join("\n").replace(/\$\{\d+:([^}]*)\}/g, "$1");
    assert.ok(!filled.includes("${"), `${label}: a place that cannot be filled in`);
    const { lines, open } = await tokenize("source.dogwood", filled);
    assert.equal(open, 0, label);
    assert.ok(filled.endsWith(";"), label);
    for (const token of lines.flatMap((line) => line.tokens)) {
      assert.ok(!meaning(token).some((scope) => scope.startsWith("invalid")), `${label}: ${token.text}`);
    }
  }
});
