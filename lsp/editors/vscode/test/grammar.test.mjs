// What the grammars make of the language's words, and of the files of this checkout.

import assert from "node:assert/strict";
import { existsSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import test from "node:test";
import { checkout, draw, extension, manifest, meaning, scopeOf, tokenize } from "./tokenize.mjs";

const words = JSON.parse(readFileSync(path.join(extension, "test/words.json"), "utf8"));
const lexer = readFileSync(path.join(checkout, "grammar/src/token.rs"), "utf8");

/** The token between « and » of a text. */
async function marked(language, text) {
  const before = text.slice(0, text.indexOf("«"));
  const wanted = text.slice(text.indexOf("«") + 1, text.indexOf("»"));
  const { lines } = await tokenize(`source.${language}`, text.replace("«", "").replace("»", ""));
  const line = before.split("\n").length - 1;
  const column = before.length - (before.lastIndexOf("\n") + 1);
  const token = lines[line].tokens.findLast((token) => token.start <= column);
  return { wanted, token, scopes: meaning(token) };
}

/** Each keyword of the lexer, and the languages that it is one of. */
function keywords() {
  const block = lexer.slice(lexer.indexOf("keys! {\n"));
  const list = block.slice(0, block.indexOf("\n}\n"));
  return [...list.matchAll(/\w+ = "(\w+)"/g)].map((match) => match[1]);
}

test("every keyword of the lexer has a text in words.json", () => {
  const found = keywords();
  assert.ok(found.length > 30, "the list of keywords in the lexer was not found");
  const listed = ["dogwood", "cedarschema", "dwschema"].flatMap((language) => Object.keys(words[language]));
  assert.deepEqual([...new Set(listed)].sort(), [...new Set(found)].sort());
});

test("every operator of the lexer has a text in words.json", () => {
  const found = [...lexer.matchAll(/#\[token\("([^"]+)"\)\]/g)].map((match) => match[1]);
  assert.deepEqual(Object.keys(words.operators).sort(), found.sort());
});

for (const language of ["dogwood", "cedarschema", "dwschema"]) {
  test(`keywords of ${language} are coloured`, async () => {
    for (const [word, text] of Object.entries(words[language])) {
      const { wanted, token, scopes } = await marked(language, text);
      assert.equal(wanted, word);
      assert.equal(token.text.trim(), word, `one token of its own: ${text}`);
      assert.ok(
        scopes.some((scope) => /^(keyword|storage|support\.type\.set)\b/.test(scope)),
        `${word} in ${text}: ${scopes}`,
      );
    }
  });

  test(`names of ${language} that look like keywords are none`, async () => {
    for (const text of words.names[language]) {
      const { wanted, token, scopes } = await marked(language, text);
      assert.ok(token.text.includes(wanted), text);
      assert.ok(scopes.length > 0, text);
      assert.ok(!scopes.some((scope) => /^(keyword|storage)\b/.test(scope)), `${text}: ${scopes}`);
    }
  });
}

test("operators are coloured", async () => {
  for (const [sign, text] of Object.entries(words.operators)) {
    const language = text.startsWith("event") || text.startsWith("max") ? "dwschema" : text.startsWith("type") ? "cedarschema" : "dogwood";
    const { wanted, token, scopes } = await marked(language, text);
    assert.equal(wanted, sign);
    assert.equal(token.text.trim(), sign, `one token of its own: ${text}`);
    assert.ok(
      scopes.some((scope) => /^(keyword\.operator|punctuation)\b/.test(scope)),
      `${sign} in ${text}: ${scopes}`,
    );
  }
});

test("windows are numbers with a unit", async () => {
  for (const unit of ["s", "m", "h", "d"]) {
    for (const text of [`formerly within «15»${unit} x`, `since within «15» ${unit} x`, `count_within(«15»${unit}, x) < 3`]) {
      const { scopes } = await marked("dogwood", `permit () when temporal { ${text} };`);
      assert.deepEqual(scopes, ["constant.numeric.duration"], text);
    }
    const { scopes } = await marked("dogwood", `permit () when temporal { formerly within 15«${unit}» x };`);
    assert.deepEqual(scopes, ["keyword.other.unit"]);
  }
});

test("escapes of strings, good and bad", async () => {
  const good = ["\\n", "\\r", "\\t", "\\0", "\\\\", '\\"', "\\'", "\\x7F", "\\u{1F333}", "\\u{00_41}"];
  for (const escape of good) {
    const { wanted, token, scopes } = await marked("dogwood", `permit () when { a == "x«${escape}»y" };`);
    assert.equal(token.text, wanted);
    assert.equal(scopes.at(-1), "constant.character.escape", escape);
  }
  for (const escape of ["\\q", "\\x8", "\\u{}"]) {
    const { scopes } = await marked("dogwood", `permit () when { a == "x«${escape}»y" };`);
    assert.equal(scopes.at(-1), "invalid.illegal.escape", escape);
  }
});

test("a temporal block ends with its own brace, whatever stands in comments and strings", async () => {
  const text = `permit () when temporal {
  // a } and a " in a comment
  A::"a}{"::request{ input.x: "}" } && formerly within 1h B::"b"::request{}
} when { «formerly» == 1 };`;
  const { scopes } = await marked("dogwood", text);
  assert.deepEqual(scopes, ["variable.other"]);
});

test("an unfinished rule does not colour the next one", async () => {
  for (const open of ["when temporal { formerly within 1h (", "when temporal { A::\"a\"::request{ x: 1", "when temporal {\n\n"]) {
    for (const next of ['@id("x")\n', ""]) {
      const { scopes } = await marked("dogwood", `permit () ${open}\n${next}permit () when { «formerly» == 1 };`);
      assert.deepEqual(scopes, ["variable.other"], open);
    }
  }
});

/** Every text of the checkout in one of the four languages; folders of builds and of packages are left out. */
function texts(folder = checkout) {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const there = path.join(folder, entry.name);
    if (entry.isDirectory()) {
      const skipped = entry.name.startsWith(".") || ["target", "node_modules", "work", "corpus"].includes(entry.name);
      return skipped ? [] : texts(there);
    }
    const ours = manifest.contributes.languages.some((language) =>
      language.extensions.some((ending) => entry.name.endsWith(ending)),
    );
    return ours ? [there] : [];
  });
}

const examples = texts().filter((file) => /[\\/](docs|stdlib-policies)[\\/]/.test(file));

test("in the examples everything has a meaning and nothing is wrong", async () => {
  assert.ok(examples.length >= 10, `${examples.length} examples found`);
  for (const file of examples) {
    const { lines, open } = await tokenize(scopeOf(file), readFileSync(file, "utf8"));
    assert.equal(open, 0, `${file}: something is not closed`);
    for (const { line, tokens } of lines) {
      for (const token of tokens.filter((token) => token.text.trim() !== "")) {
        const scopes = meaning(token);
        assert.notDeepEqual(scopes, [], `${file}: ${token.text} in ${line}`);
        assert.ok(!scopes.some((scope) => scope.startsWith("invalid")), `${file}: ${token.text} in ${line}`);
      }
    }
  }
});

const drawn = [
  "docs/examples/payment-caps/policy.dw",
  "docs/examples/push-after-tests/policy.dw",
  "docs/examples/push-after-tests/policy.dwtest.toml",
  "docs/examples/seal-after-reading/policy.dw",
  "stdlib-policies/box/actions.cedarschema",
  "stdlib-policies/box/events.dwschema",
  "stdlib-policies/macros.dw",
  "lsp/editors/vscode/test/texts/events.dwschema",
  "lsp/editors/vscode/test/texts/depot.cedarschema",
  "lsp/editors/vscode/test/texts/everything.dw",
];

for (const name of drawn) {
  test(`colours of ${name}`, async () => {
    const file = path.join(checkout, name);
    const now = draw(await tokenize(scopeOf(file), readFileSync(file, "utf8")));
    const kept = path.join(extension, "test/snapshots", `${name.replace(/^.*vscode\/test\//, "").replaceAll("/", "-")}.snap`);
    if (process.env.UPDATE_SNAPSHOTS) {
      writeFileSync(kept, now);
    }
    assert.ok(existsSync(kept), "no snapshot yet; `npm run update-snapshots` makes one");
    assert.equal(now, readFileSync(kept, "utf8"), "`npm run update-snapshots` writes what it is now; read the difference");
  });
}
