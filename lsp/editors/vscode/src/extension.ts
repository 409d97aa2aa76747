// The extension: starts `dogwood-lsp` and shows what it answers to commands. All it knows of the language is in the server.

import * as fs from "node:fs";
import * as os from "node:os";
import * as path from "node:path";
import * as vscode from "vscode";
import { type ClientCapabilities, LanguageClient, type Middleware, type StaticFeature } from "vscode-languageclient/node";
import { headline, isSummary, report } from "./results";
import { type Found, INSTALL, findServer, missing, serverSettings } from "./settings";

const LANGUAGES = ["dogwood", "cedarschema", "dwschema", "dwtest"];
const WATCHED = ["**/*.{dw,cedarschema,dwschema}", "**/*.dwtest.toml", "**/box.toml"];
const EXPLAINED = "dogwood-explained";
/** Of the addresses of what is built in: the macros, and the schemas of a box. */
const BUILT_IN = "dogwood";

let server: Server | undefined;

export async function activate(context: vscode.ExtensionContext): Promise<void> {
  const tests = vscode.window.createOutputChannel("Dogwood Tests");
  const explained = new Explained();
  const own = (server = new Server(context));
  context.subscriptions.push(
    tests,
    own,
    vscode.workspace.registerTextDocumentContentProvider(EXPLAINED, explained),
    vscode.workspace.registerTextDocumentContentProvider(BUILT_IN, {
      provideTextDocumentContent: (uri) => own.source(uri),
    }),
    vscode.commands.registerCommand("dogwood.test", (file?: unknown, test?: unknown) => runTests(own, tests, file, test)),
    vscode.commands.registerCommand("dogwood.explain", (file?: unknown, line?: unknown) =>
      explain(own, explained, file, typeof line === "number" ? line : undefined),
    ),
    vscode.commands.registerCommand("dogwood.explainRule", () =>
      explain(own, explained, undefined, vscode.window.activeTextEditor?.selection.active.line),
    ),
    vscode.commands.registerCommand("dogwood.restartServer", () => own.restart()),
    vscode.workspace.onDidChangeConfiguration((change) => own.configured(change)),
  );
  await own.start();
}

export async function deactivate(): Promise<void> {
  await server?.stop();
}

/** The language server, running or not. */
class Server {
  readonly output = vscode.window.createOutputChannel("Dogwood", { log: true });
  private readonly watchers = WATCHED.map((glob) => vscode.workspace.createFileSystemWatcher(glob));
  private client: LanguageClient | undefined;
  private readonly idioms: Set<string>;
  /** Starts and stops happen one after the other. */
  private turn: Promise<void> = Promise.resolve();

  constructor(context: vscode.ExtensionContext) {
    this.idioms = idioms(path.join(context.extensionPath, "snippets", "dogwood.json"));
  }

  start(): Promise<void> {
    return this.inTurn(() => this.started());
  }

  stop(): Promise<void> {
    return this.inTurn(() => this.stopped());
  }

  restart(): Promise<void> {
    return this.inTurn(async () => {
      await this.stopped();
      await this.started();
    });
  }

  async configured(change: vscode.ConfigurationChangeEvent): Promise<void> {
    if (change.affectsConfiguration("dogwood.server.path") || change.affectsConfiguration("dogwood.lint")) {
      await this.restart();
    } else if (change.affectsConfiguration("dogwood")) {
      await this.client?.sendNotification("workspace/didChangeConfiguration", {
        settings: { dogwood: settings() },
      });
    }
  }

  dispose(): void {
    for (const part of [this.output, ...this.watchers]) {
      part.dispose();
    }
  }

  /** The answer of the server to a command; nothing, and a message, when there is no server or it refuses. */
  async ask(command: string, args: unknown[]): Promise<unknown> {
    if (this.client === undefined) {
      await this.start();
    }
    if (this.client === undefined) {
      return undefined;
    }
    try {
      return await this.client.sendRequest("workspace/executeCommand", { command, arguments: args });
    } catch (error) {
      void vscode.window.showErrorMessage(`Dogwood: ${error instanceof Error ? error.message : String(error)}`);
      return undefined;
    }
  }

  /** The text of what is built in. */
  async source(uri: vscode.Uri): Promise<string | undefined> {
    if (this.client === undefined) {
      await this.start();
    }
    // Refused, the editor says itself that it cannot show the document.
    return this.client?.sendRequest<string>("dogwood/source", { uri: uri.toString() });
  }

  private inTurn(act: () => Promise<void>): Promise<void> {
    this.turn = this.turn.then(act, act);
    return this.turn;
  }

  private async stopped(): Promise<void> {
    const client = this.client;
    this.client = undefined;
    await client?.dispose();
  }

  private async started(): Promise<void> {
    if (this.client !== undefined) {
      return;
    }
    const found = findServer(vscode.workspace.getConfiguration("dogwood").get("server.path"), {
      platform: process.platform,
      path: process.env["PATH"],
      home: os.homedir(),
      workspaceFolder: vscode.workspace.workspaceFolders?.[0]?.uri.fsPath,
      runs,
    });
    if (!found.found) {
      // Not awaited: the message stays until somebody reads it.
      void this.sayMissing(found);
      return;
    }
    const client = new LanguageClient(
      "dogwood",
      "Dogwood",
      { command: found.command },
      {
        documentSelector: ["file", BUILT_IN].flatMap((scheme) => LANGUAGES.map((language) => ({ scheme, language }))),
        initializationOptions: settings(),
        outputChannel: this.output,
        synchronize: { fileEvents: this.watchers },
        middleware: this.middleware(),
      },
    );
    client.registerFeature(new OwnFeatures());
    this.client = client;
    try {
      await client.start();
    } catch {
      // The client has said why, with a button for its output.
      this.client = undefined;
    }
  }

  private middleware(): Middleware {
    const deny = vscode.workspace.getConfiguration("dogwood").get("lint.denyWarnings") === true;
    const raise = (found: readonly vscode.Diagnostic[]): void => {
      for (const diagnostic of deny ? found : []) {
        if (diagnostic.severity === vscode.DiagnosticSeverity.Warning) {
          diagnostic.severity = vscode.DiagnosticSeverity.Error;
        }
      }
    };
    return {
      handleDiagnostics: (uri, diagnostics, next) => {
        raise(diagnostics);
        next(uri, diagnostics);
      },
      provideDiagnostics: async (document, previous, token, next) => {
        const answer = await next(document, previous, token);
        if (answer !== null && answer !== undefined && "items" in answer) {
          raise(answer.items);
        }
        return answer;
      },
      // The editor has the same idioms as snippets of this extension.
      provideCompletionItem: async (document, position, context, token, next) => {
        const answer = await next(document, position, context, token);
        const keep = (item: vscode.CompletionItem): boolean =>
          item.kind !== vscode.CompletionItemKind.Snippet || !this.idioms.has(String(item.label));
        if (Array.isArray(answer)) {
          return answer.filter(keep);
        }
        return answer && new vscode.CompletionList(answer.items.filter(keep), answer.isIncomplete);
      },
    };
  }

  private async sayMissing(found: Exclude<Found, { found: true }>): Promise<void> {
    const text = missing(found);
    this.output.error(text);
    await this.offer(
      text,
      ["Copy Command", () => vscode.env.clipboard.writeText(INSTALL)],
      ["Open Setting", () => vscode.commands.executeCommand("workbench.action.openSettings", "dogwood.server.path")],
      ["Try Again", () => this.restart()],
    );
  }

  private async offer(text: string, ...choices: [string, () => unknown][]): Promise<void> {
    const chosen = await vscode.window.showErrorMessage(text, ...choices.map(([title]) => title));
    await choices.find(([title]) => title === chosen)?.[1]();
  }
}

/**
 * The commands of the server are registered above: they show what it answers. Left in, each would be there twice. And what is
 * built in can be opened here.
 */
class OwnFeatures implements StaticFeature {
  fillClientCapabilities(capabilities: ClientCapabilities): void {
    const others = capabilities.experimental as object | undefined;
    capabilities.experimental = { ...others, dogwood: { source: true } };
  }
  preInitialize: NonNullable<StaticFeature["preInitialize"]> = (capabilities) => {
    delete capabilities.executeCommandProvider;
  };
  initialize(): void {}
  getState(): ReturnType<StaticFeature["getState"]> {
    return { kind: "static" };
  }
  clear(): void {}
}

/** Explanations, as texts that cannot be edited. */
class Explained implements vscode.TextDocumentContentProvider {
  private readonly texts = new Map<string, string>();
  private readonly changed = new vscode.EventEmitter<vscode.Uri>();
  readonly onDidChange = this.changed.event;

  provideTextDocumentContent(uri: vscode.Uri): string {
    return this.texts.get(uri.path) ?? "";
  }

  async show(name: string, text: string): Promise<void> {
    const uri = vscode.Uri.from({ scheme: EXPLAINED, path: `/${name}` });
    this.texts.set(uri.path, text);
    this.changed.fire(uri);
    const document = await vscode.workspace.openTextDocument(uri);
    await vscode.window.showTextDocument(document, {
      viewColumn: vscode.ViewColumn.Beside,
      preserveFocus: true,
      preview: true,
    });
  }
}

async function runTests(server: Server, output: vscode.OutputChannel, file: unknown, test: unknown): Promise<void> {
  const document = documentOf(file, ["dogwood", "dwtest"]);
  if (document === undefined) {
    return;
  }
  const args = typeof test === "string" ? [document, test] : [document];
  const answer = await server.ask("dogwood.test", args);
  if (!isSummary(answer)) {
    return;
  }
  output.clear();
  output.appendLine(report(answer, (address) => vscode.workspace.asRelativePath(vscode.Uri.parse(address))));
  if (answer.failures.length > 0) {
    output.show(true);
    void vscode.window.showErrorMessage(`Dogwood: ${headline(answer)}`);
  } else {
    void vscode.window.showInformationMessage(`Dogwood: ${headline(answer)}`);
  }
}

async function explain(server: Server, explained: Explained, file: unknown, line: number | undefined): Promise<void> {
  const document = documentOf(file, ["dogwood"]);
  if (document === undefined) {
    return;
  }
  const answer = await server.ask("dogwood.explain", line === undefined ? [document] : [document, line]);
  if (typeof answer !== "string") {
    return;
  }
  if (answer === "") {
    const where = line === undefined ? "in this file" : "at the cursor";
    void vscode.window.showInformationMessage(`Dogwood: there is no rule ${where} that can be explained.`);
    return;
  }
  const name = path.posix.basename(vscode.Uri.parse(document).path);
  await explained.show(`${name} in plain English`, answer);
}

/** The address of a document: the one that is said, else the one being edited. */
function documentOf(said: unknown, languages: string[]): string | undefined {
  if (typeof said === "string") {
    return said;
  }
  // A menu hands over the document it was opened on.
  if (said instanceof vscode.Uri) {
    return said.toString();
  }
  const document = vscode.window.activeTextEditor?.document;
  if (document !== undefined && languages.includes(document.languageId)) {
    return document.uri.toString();
  }
  void vscode.window.showInformationMessage("Dogwood: open a policy (.dw) or its tests (.dwtest.toml) first.");
  return undefined;
}

function settings(): Record<string, string | boolean> {
  const section = vscode.workspace.getConfiguration("dogwood");
  return serverSettings((key) => section.get(key));
}

function runs(file: string): boolean {
  try {
    fs.accessSync(file, fs.constants.X_OK);
    return fs.statSync(file).isFile();
  } catch {
    return false;
  }
}

function idioms(file: string): Set<string> {
  return new Set(Object.keys(JSON.parse(fs.readFileSync(file, "utf8")) as object));
}
