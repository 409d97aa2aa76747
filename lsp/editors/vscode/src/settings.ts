// What an author sets, as the server takes it, and where the server is.

import * as path from "node:path";

/** Reads one setting of the section `dogwood`. */
export type Get = (key: string) => unknown;

const FILES = ["policySchema", "eventSchema", "macros", "providers"] as const;

/** The options of `dogwood check`, under the names the server has for them. What is not set is left out. */
export function serverSettings(get: Get): Record<string, string | boolean> {
  const settings: Record<string, string | boolean> = {};
  for (const key of FILES) {
    const file = get(key);
    if (typeof file === "string" && file.trim() !== "") {
      settings[key] = file.trim();
    }
  }
  settings["experimentalArithmetic"] = get("experimentalArithmetic") === true;
  return settings;
}

/** What there is around the editor, handed in. */
export interface Surroundings {
  platform: NodeJS.Platform;
  path: string | undefined;
  home: string;
  workspaceFolder: string | undefined;
  /** Whether a file is there and may be run. */
  runs: (file: string) => boolean;
}

export type Found =
  | { found: true; command: string }
  /** Set, but not there. */
  | { found: false; reason: "setting"; tried: string }
  | { found: false; reason: "path" };

export const SERVER = "dogwood-lsp";

/** The language server: the file that is set, else the first of that name on the `PATH`. */
export function findServer(set: unknown, around: Surroundings): Found {
  const windows = around.platform === "win32";
  const { join, isAbsolute, delimiter } = windows ? path.win32 : path.posix;
  const endings = windows ? ["", ".exe"] : [""];
  const wanted = typeof set === "string" ? set.trim() : "";
  if (wanted !== "") {
    let file = wanted.replaceAll("${workspaceFolder}", around.workspaceFolder ?? "");
    if (file === "~" || file.startsWith("~/") || (windows && file.startsWith("~\\"))) {
      file = join(around.home, file.slice(1));
    }
    if (!isAbsolute(file) && /[\\/]/.test(file) && around.workspaceFolder !== undefined) {
      file = join(around.workspaceFolder, file);
    }
    if (isAbsolute(file)) {
      for (const ending of endings) {
        if (around.runs(file + ending)) {
          return { found: true, command: file + ending };
        }
      }
      return { found: false, reason: "setting", tried: file };
    }
    const named = onPath(file);
    return named === undefined ? { found: false, reason: "setting", tried: file } : { found: true, command: named };
  }
  const command = onPath(SERVER);
  return command === undefined ? { found: false, reason: "path" } : { found: true, command };

  function onPath(name: string): string | undefined {
    // A relative entry would be looked up in whatever folder is open.
    const folders = (around.path ?? "").split(delimiter).filter((folder) => isAbsolute(folder));
    const files = folders.flatMap((folder) => endings.map((ending) => join(folder, name + ending)));
    return files.find(around.runs);
  }
}

/** What to tell an author whose server is not there: what is wrong, and what to do next. */
export function missing(found: Exclude<Found, { found: true }>): string {
  const next = `Build it in a checkout of Dogwood with \`${INSTALL}\``;
  return found.reason === "setting"
    ? `Dogwood: there is no program at "${found.tried}", where \`dogwood.server.path\` looks for the language server. ${next}, or correct the setting.`
    : `Dogwood: the language server \`${SERVER}\` is not on the PATH, so files are coloured but not checked. ${next}, or set \`dogwood.server.path\`.`;
}

export const INSTALL = "cargo install --path lsp --locked";
