// The parts of the client that need no editor. `npm run compile` comes first.

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import test from "node:test";

const require = createRequire(import.meta.url);
const { findServer, missing, serverSettings } = require("../out/settings.js");
const { headline, isSummary, report } = require("../out/results.js");

const around = (files, over = {}) => ({
  platform: "linux",
  path: "/usr/bin:relative:/home/ann/.cargo/bin",
  home: "/home/ann",
  workspaceFolder: "/src/box",
  runs: (file) => files.includes(file),
  ...over,
});

test("the server is the first on the PATH", () => {
  const files = ["/home/ann/.cargo/bin/dogwood-lsp", "relative/dogwood-lsp"];
  assert.deepEqual(findServer("", around(files)), { found: true, command: files[0] });
  assert.deepEqual(findServer(undefined, around([])), { found: false, reason: "path" });
  assert.deepEqual(findServer("", around(files, { path: undefined })), { found: false, reason: "path" });
});

test("a folder of the PATH that is relative is not looked into", () => {
  assert.deepEqual(findServer("", around(["relative/dogwood-lsp"])), { found: false, reason: "path" });
});

test("the path that is set wins, with its short forms", () => {
  const files = ["/opt/dogwood-lsp", "/home/ann/bin/lsp", "/src/box/target/debug/dogwood-lsp", "/usr/bin/dogwood-lsp", "/usr/bin/other"];
  const found = (set) => findServer(set, around(files)).command;
  assert.equal(found("/opt/dogwood-lsp"), "/opt/dogwood-lsp");
  assert.equal(found(" ~/bin/lsp "), "/home/ann/bin/lsp");
  assert.equal(found("${workspaceFolder}/target/debug/dogwood-lsp"), "/src/box/target/debug/dogwood-lsp");
  assert.equal(found("./target/debug/dogwood-lsp"), "/src/box/target/debug/dogwood-lsp");
  assert.equal(found("other"), "/usr/bin/other");
});

test("a path that is set and wrong is not replaced by another server", () => {
  const found = findServer("/opt/none", around(["/usr/bin/dogwood-lsp"]));
  assert.deepEqual(found, { found: false, reason: "setting", tried: "/opt/none" });
});

test("on Windows the ending may be left out", () => {
  const files = ["C:\\tools\\dogwood-lsp.exe"];
  const windows = around(files, { platform: "win32", path: "C:\\Windows;C:\\tools" });
  assert.deepEqual(findServer("", windows), { found: true, command: files[0] });
  assert.deepEqual(findServer("C:\\tools\\dogwood-lsp", windows), { found: true, command: files[0] });
});

test("what is missing is said with the next step", () => {
  assert.equal(
    missing({ found: false, reason: "path" }),
    "Dogwood: the language server `dogwood-lsp` is not on the PATH, so files are coloured but not checked. Build it in a checkout of Dogwood with `cargo install --path lsp --locked`, or set `dogwood.server.path`.",
  );
  assert.equal(
    missing({ found: false, reason: "setting", tried: "/opt/none" }),
    'Dogwood: there is no program at "/opt/none", where `dogwood.server.path` looks for the language server. Build it in a checkout of Dogwood with `cargo install --path lsp --locked`, or correct the setting.',
  );
});

test("settings that are empty are not sent", () => {
  const set = { policySchema: " a.cedarschema ", eventSchema: "", macros: null, experimentalArithmetic: "yes" };
  assert.deepEqual(serverSettings((key) => set[key]), { policySchema: "a.cedarschema", experimentalArithmetic: false });
  assert.deepEqual(serverSettings(() => true), { experimentalArithmetic: true });
});

test("test runs in words", () => {
  const run = (tests, failures) => ({ tests, passed: tests - failures.length, failed: failures.length, failures });
  assert.equal(headline(run(1, [])), "1 test passed.");
  assert.match(headline(run(0, [])), /^There are no tests for this policy: /);
  const failures = [
    {
      file: "file:///p/policy.dwtest.toml",
      test: "push waits",
      at: "event 3, at +5m: shell:spawn of git push",
      message: "expected allow, got deny",
      why: ["denied by push_gate", "nothing of the kind was seen\nsince 09:00"],
    },
  ];
  assert.equal(
    report(run(3, failures), (file) => file.slice("file:///p/".length)),
    `1 of 3 tests failed.

policy.dwtest.toml: push waits
  event 3, at +5m: shell:spawn of git push
  expected allow, got deny
  denied by push_gate
  nothing of the kind was seen
  since 09:00`,
  );
  const broken = { tests: 0, passed: 0, failed: 0, failures: [{ file: "file:///p/x", message: "cannot read it" }] };
  assert.equal(headline(broken), "Tests could not be run.");
  assert.equal(report(broken, (file) => file), "Tests could not be run.\n\nfile:///p/x\n  cannot read it");
});

test("what is no summary is not taken for one", () => {
  for (const value of [null, undefined, "3 passed", 3, {}, { tests: 1, failed: 0 }]) {
    assert.equal(isSummary(value), false);
  }
});
