// Puts what tsc made, and the packages it needs, into one file; and the licences of those packages beside it.

import { build } from "esbuild";
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import path from "node:path";

const { metafile } = await build({
  entryPoints: ["out/extension.js"],
  outfile: "dist/extension.js",
  bundle: true,
  platform: "node",
  format: "cjs",
  target: "node20",
  external: ["vscode"],
  minify: true,
  legalComments: "none",
  logLevel: "warning",
  metafile: true,
});

const folders = Object.keys(metafile.inputs)
  .map((file) => /^(?:.*\/)?node_modules\/(?:@[^/]+\/)?[^/]+/.exec(file)?.[0])
  .filter((folder) => folder !== undefined);

const notices = [...new Set(folders)].sort().map((folder) => {
  const { name, version, license } = JSON.parse(readFileSync(path.join(folder, "package.json"), "utf8"));
  const file = readdirSync(folder).find((file) => /^licen[cs]e/i.test(file));
  if (file === undefined) {
    throw new Error(`${name} ${version} (${license}) comes without the text of its licence`);
  }
  return `${name} ${version} (${license})\n\n${readFileSync(path.join(folder, file), "utf8").trim()}\n`;
});
writeFileSync(
  "dist/THIRD-PARTY.txt",
  `dist/extension.js contains these packages, each under its own licence.\n\n${notices.join(`\n${"-".repeat(80)}\n\n`)}`,
);
