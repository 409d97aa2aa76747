//! A real editor: headless Neovim starts the server, edits a policy, and writes down what it was told. Skipped
//! where there is no `nvim`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

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
    version.is_ok_and(|status| status.success())
}

#[test]
fn neovim_talks_to_the_server() {
    if !there_is_neovim() {
        println!("skipped: there is no `nvim` on the path (Debian has it as `neovim`)");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::write(
        at("policy.dw"),
        "@id(\"é\")\npermit(principal, action == Box::Action::\"shell:exce\", resource);\n",
    )
    .unwrap();
    std::fs::write(at("script.lua"), SCRIPT).unwrap();
    let out = at("out");
    // Not `-l`, which older versions do not have.
    let ran = Command::new("nvim")
        .args(["--headless", "--clean", "-n", "-c"])
        .arg(format!("luafile {}", at("script.lua").display()))
        .env("DOGWOOD_LSP", env!("CARGO_BIN_EXE_dogwood-lsp"))
        .env("DOGWOOD_POLICY", at("policy.dw"))
        .env("DOGWOOD_OUT", &out)
        .env("HOME", folder.path())
        .env("XDG_STATE_HOME", folder.path())
        .env("XDG_CACHE_HOME", folder.path())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let told = std::fs::read_to_string(&out).unwrap_or_else(|_| {
        panic!(
            "nvim wrote nothing: {}",
            String::from_utf8_lossy(&ran.stderr)
        )
    });
    insta::assert_snapshot!(told);
}
