// Texts as VS Code colours them: the same engine, and the grammars of this extension.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { fileURLToPath } from "node:url";

const require = createRequire(import.meta.url);
const textmate = require("vscode-textmate");
const oniguruma = require("vscode-oniguruma");

export const extension = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
export const checkout = path.resolve(extension, "../../..");

export const manifest = JSON.parse(readFileSync(path.join(extension, "package.json"), "utf8"));
const grammars = new Map(
  manifest.contributes.grammars.map((grammar) => [grammar.scopeName, path.join(extension, grammar.path)]),
);

await oniguruma.loadWASM(readFileSync(require.resolve("vscode-oniguruma/release/onig.wasm")));
const registry = new textmate.Registry({
  onigLib: Promise.resolve({
    createOnigScanner: (patterns) => new oniguruma.OnigScanner(patterns),
    createOnigString: (text) => new oniguruma.OnigString(text),
  }),
  loadGrammar: async (scope) => {
    const file = grammars.get(scope);
    return file === undefined ? null : textmate.parseRawGrammar(readFileSync(file, "utf8"), file);
  },
});

/** The scope of the grammar for a file of this name. */
export function scopeOf(file) {
  const language = manifest.contributes.languages.find((known) =>
    known.extensions.some((ending) => file.endsWith(ending)),
  );
  return manifest.contributes.grammars.find((grammar) => grammar.language === language?.id).scopeName;
}

/**
 * The lines of a text, each with its tokens: `{ text, start, scopes }`, without the scope of the whole file.
 * `open` says how many rules are still open behind the last line; a finished text leaves none.
 */
export async function tokenize(scope, text) {
  const grammar = await registry.loadGrammar(scope);
  const lines = [];
  let state = textmate.INITIAL;
  for (const line of text.split(/\r?\n/)) {
    const { tokens, ruleStack, stoppedEarly } = grammar.tokenizeLine(line, state);
    if (stoppedEarly) {
      throw new Error(`gave up on: ${line}`);
    }
    state = ruleStack;
    lines.push({
      line,
      tokens: tokens.map((token) => ({
        text: line.slice(token.startIndex, token.endIndex),
        start: token.startIndex,
        scopes: token.scopes.slice(1).flatMap((scopes) => scopes.split(" ")),
      })),
    });
  }
  return { lines, open: state.depth - 1 };
}

const CONTEXT = /^meta\./;

/** What a token is: its scopes without those that only say where it stands, and without the name of the language. */
export function meaning(token) {
  return token.scopes.filter((scope) => !CONTEXT.test(scope)).map((scope) => scope.replace(/\.[a-z]+$/, ""));
}

/** A text with the meanings of its words under each line, for a person to read; brackets, commas and quotes are left out. */
export function draw({ lines }) {
  const out = [];
  for (const { line, tokens } of lines) {
    out.push(`| ${line}`.trimEnd());
    for (const token of tokens) {
      const scopes = meaning(token);
      const small = scopes.some((scope) => scope.startsWith("punctuation."));
      if (token.text.trim() !== "" && !small) {
        out.push(`    ${token.text.trim()} → ${scopes.join(" ")}`.trimEnd());
      }
    }
  }
  return `${out.join("\n")}\n`;
}
