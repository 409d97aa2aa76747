//! A real editor: headless Neovim starts the server, edits a policy, and writes down what it was told. Skipped
//! where there is no `nvim`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const SCRIPT: &str = r#"
local out = {}
local function say(...) table.insert(out, table.concat({...}, " ")) end
local function finish()
  vim.fn.writefile(out, vim.env.DOGWOOD_OUT)
  vim.cmd("qall!")
end
local ok, problem = pcall(function()
  vim.cmd("edit " .. vim.env.DOGWOOD_POLICY)
  local client = vim.lsp.start_client({
    name = "dogwood",
    cmd = { vim.env.DOGWOOD_LSP },
    root_dir = vim.fn.fnamemodify(vim.env.DOGWOOD_POLICY, ":h"),
    get_language_id = function() return "dogwood" end,
  })
  vim.lsp.buf_attach_client(0, client)
  local function wait(what, test)
    if not vim.wait(30000, test, 20) then say("no", what) end
  end
  local function count() return #vim.diagnostic.get(0) end
  wait("start", function()
    return #vim.lsp.buf_get_clients(0) > 0 and vim.lsp.get_client_by_id(client).initialized
  end)
  wait("diagnostics", function() return count() == 1 end)
  for _, found in ipairs(vim.diagnostic.get(0)) do
    say("diagnostic", found.code or found.user_data.lsp.code, found.lnum .. ":" .. found.col)
  end
  local function request(method, params)
    params.textDocument = vim.lsp.util.make_text_document_params(0)
    local replies = vim.lsp.buf_request_sync(0, method, params, 30000) or {}
    for _, reply in pairs(replies) do
      if reply.error then say("error", reply.error.message) end
      return reply.result
    end
  end
  local line = vim.api.nvim_buf_get_lines(0, 1, 2, true)[1]
  local hover = request("textDocument/hover", { position = { line = 1, character = 1 } })
  say("hover", (hover.contents.value:gsub("\n.*", "")))
  local symbols = request("textDocument/documentSymbol", {})
  for _, symbol in ipairs(symbols) do say("symbol", symbol.name) end
  local start = line:find("shell:exce") - 1
  vim.api.nvim_buf_set_text(0, 1, start, 1, start + 10, { "shell:exec" })
  wait("mended", function() return count() == 0 end)
  say("mended", tostring(count()))
  local edits = request("textDocument/formatting", { options = { tabSize = 2, insertSpaces = true } })
  vim.lsp.util.apply_text_edits(edits, 0, "utf-16")
  for _, text in ipairs(vim.api.nvim_buf_get_lines(0, 0, -1, true)) do say("text", text) end
  vim.lsp.stop_client(client)
  wait("stop", function() return vim.lsp.client_is_stopped(client) end)
end)
if not ok then say("failed", tostring(problem)) end
finish()
"#;

fn there_is_neovim() -> bool {
    let version = Command::new("nvim")
        .arg("--version")
        .stdout(Stdio::null())
        .status();
    let there = version.is_ok_and(|status| status.success());
    if !there {
        println!("skipped: there is no `nvim` on the path (Debian has it as `neovim`)");
    }
    there
}

/// As somebody uses it: the plugin starts the server, and a definition leads to what is built in.
const PLUGIN: &str = r#"
local out = {}
local function say(...) table.insert(out, table.concat({...}, " ")) end
local ok, problem = pcall(function()
  vim.opt.runtimepath:prepend(vim.env.DOGWOOD_PLUGIN)
  vim.cmd("filetype off | filetype plugin indent on")
  require("dogwood").setup({ cmd = { vim.env.DOGWOOD_LSP } })
  vim.cmd("edit " .. vim.env.DOGWOOD_POLICY)
  local function client()
    for _, client in pairs(vim.lsp.get_active_clients()) do return client end
  end
  vim.wait(30000, function() return client() and client().initialized end, 20)
  for _, column in ipairs({ 45, 20 }) do
    vim.cmd("buffer 1")
    vim.api.nvim_win_set_cursor(0, { column == 45 and 1 or 2, column })
    local params = vim.lsp.util.make_position_params()
    for _, reply in pairs(vim.lsp.buf_request_sync(0, "textDocument/definition", params, 30000) or {}) do
      vim.lsp.util.jump_to_location(reply.result[1], "utf-16")
    end
    say(vim.fn.fnamemodify(vim.api.nvim_buf_get_name(0), ":s?^/.*/??"), vim.bo.filetype, tostring(vim.bo.modifiable), tostring(vim.bo.modified))
    say(vim.trim(vim.api.nvim_get_current_line()))
  end
  local params = { textDocument = vim.lsp.util.make_text_document_params(0) }
  for _, reply in pairs(vim.lsp.buf_request_sync(0, "textDocument/documentSymbol", params, 30000) or {}) do
    say("symbols", tostring(#reply.result > 0))
  end
  local count = 0
  for _ in pairs(vim.lsp.get_active_clients()) do count = count + 1 end
  say("clients", tostring(count))
end)
if not ok then say("failed", tostring(problem)) end
vim.fn.writefile(out, vim.env.DOGWOOD_OUT)
vim.cmd("qall!")
"#;

fn plugin() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("editors/neovim")
}

/// What a script writes that Neovim runs beside a policy.
fn ran(policy: &str, script: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("policy.dw"), policy).unwrap();
    std::fs::write(at("script.lua"), script).unwrap();
    let out = at("out");
    // Not `-l`, which older versions do not have.
    let ran = Command::new("nvim")
        .args(["--headless", "--clean", "-n", "-c"])
        .arg(format!("luafile {}", at("script.lua").display()))
        .env("DOGWOOD_LSP", env!("CARGO_BIN_EXE_dogwood-lsp"))
        .env("DOGWOOD_PLUGIN", plugin())
        .env("DOGWOOD_POLICY", at("policy.dw"))
        .env("DOGWOOD_OUT", &out)
        .env("HOME", folder.path())
        .env("XDG_STATE_HOME", folder.path())
        .env("XDG_CACHE_HOME", folder.path())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    std::fs::read_to_string(&out).unwrap_or_else(|_| {
        panic!(
            "nvim wrote nothing: {}",
            String::from_utf8_lossy(&ran.stderr)
        )
    })
}

#[test]
fn neovim_talks_to_the_server() {
    if !there_is_neovim() {
        return;
    }
    insta::assert_snapshot!(ran(
        "@id(\"é\")\npermit(principal, action == Box::Action::\"shell:exce\", resource);\n",
        SCRIPT,
    ));
}

#[test]
fn neovim_opens_what_is_built_in() {
    if !there_is_neovim() {
        return;
    }
    insta::assert_snapshot!(ran(
        "permit (principal, action == Box::Action::\"fs:read\", resource)\nwhen temporal { count_within(1h, Box::Action::\"fs:read\"::request{}) < 3 };\n",
        PLUGIN,
    ));
}

/// File types, colours and what the plugin says: its own test.
#[test]
fn the_files_of_neovim_are_right() {
    if !there_is_neovim() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let ran = Command::new("nvim")
        .args(["--headless", "-n", "-u", "NONE", "-S", "test/check.lua"])
        .current_dir(plugin())
        .env("HOME", folder.path())
        .env("XDG_STATE_HOME", folder.path())
        .env("XDG_CACHE_HOME", folder.path())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{said}");
    assert!(said.contains(" passed, 0 failed"), "{said}");
}
