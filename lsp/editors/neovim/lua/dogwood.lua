-- Starts `dogwood-lsp` for the four kinds of files, in Neovim 0.7 and later.

local M = {}

M.filetypes = { "dogwood", "cedarschema", "dwschema", "dwtest" }

-- A box and its policy stand in one folder; a repository has several.
M.root_markers = { "box.toml", ".git" }

local function say(text, level)
  vim.notify("Dogwood: " .. text, level or vim.log.levels.INFO)
end

local function root_of(file)
  local folder = vim.fn.fnamemodify(file, ":p:h")
  for _, marker in ipairs(M.root_markers) do
    local path = vim.fn.escape(folder, " ,;*")
    local found = vim.fn.finddir(marker, path .. ";")
    if found == "" then
      found = vim.fn.findfile(marker, path .. ";")
    end
    if found ~= "" then
      return vim.fn.fnamemodify(vim.fn.fnamemodify(found, ":p"):gsub("/$", ""), ":h")
    end
  end
  return folder
end

local function plural(n, one)
  return n .. " " .. one .. (n == 1 and "" or "s")
end

-- What a run of tests came to: one line, and one entry of the quickfix list for each failure.
function M.summary(result)
  local entries = {}
  local unread = false
  for _, failure in ipairs(result.failures or {}) do
    unread = unread or failure.test == nil
    local parts = { failure.test, failure.at, failure.message }
    local text = {}
    for at = 1, 3 do
      if parts[at] ~= nil and parts[at] ~= vim.NIL then
        text[#text + 1] = parts[at]
      end
    end
    for _, line in ipairs(type(failure.why) == "table" and failure.why or {}) do
      text[#text + 1] = line
    end
    entries[#entries + 1] = {
      filename = vim.uri_to_fname(failure.file),
      lnum = M.line_of(failure.file, failure.test),
      text = table.concat(text, " · "):gsub("\n", " "),
      type = "E",
    }
  end
  if unread then
    return "tests could not be run", entries
  end
  if result.tests == 0 then
    return "there are no tests for this policy; a file with its name and the ending .dwtest.toml has them", entries
  end
  if result.failed == 0 then
    return plural(result.tests, "test") .. " passed", entries
  end
  return result.failed .. " of " .. plural(result.tests, "test") .. " failed", entries
end

-- The line where a test of this name is written, or the first.
function M.line_of(uri, test)
  local ok, lines = pcall(vim.fn.readfile, vim.uri_to_fname(uri))
  if ok and type(test) == "string" then
    -- A test with cases has its case in brackets behind its name.
    for _, name in ipairs({ test, (test:gsub(" %(.*$", "")) }) do
      for at, line in ipairs(lines) do
        if line:match("^%s*name%s*=") and line:find('"' .. name .. '"', 1, true) then
          return at
        end
      end
    end
  end
  return 1
end

local function show_tests(error, result)
  if error then
    return say(error.message or "the tests could not be run", vim.log.levels.ERROR)
  end
  if type(result) ~= "table" then
    return
  end
  local text, entries = M.summary(result)
  vim.fn.setqflist({}, " ", { title = "Dogwood tests", items = entries })
  if #entries > 0 then
    vim.cmd("botright copen | wincmd p")
  end
  say(text, #entries > 0 and vim.log.levels.ERROR or vim.log.levels.INFO)
end

local function show_explanation(error, result)
  if error then
    return say(error.message or "there is no explanation", vim.log.levels.ERROR)
  end
  if type(result) ~= "string" or result == "" then
    return say("there is no rule here that can be explained")
  end
  vim.cmd("botright vnew")
  local buffer = vim.api.nvim_get_current_buf()
  vim.bo[buffer].buftype = "nofile"
  vim.bo[buffer].bufhidden = "wipe"
  vim.bo[buffer].swapfile = false
  vim.wo.wrap = true
  vim.wo.linebreak = true
  vim.api.nvim_buf_set_lines(buffer, 0, -1, false, vim.split(result, "\n"))
  vim.bo[buffer].modifiable = false
  vim.cmd("wincmd p")
end

-- The clients of the buffer being edited, as each version lists them.
local function attached()
  if vim.lsp.get_clients then
    return vim.lsp.get_clients({ bufnr = 0 })
  end
  return vim.lsp.buf_get_clients(0)
end

-- All of them, as each version lists them.
local function every()
  return (vim.lsp.get_clients or vim.lsp.get_active_clients)()
end

local types = { dw = "dogwood", cedarschema = "cedarschema", dwschema = "dwschema" }

-- What is built in has no file: the server gives its text. It is read like any other, and stays as it is.
local function show_source(buffer)
  local address = vim.api.nvim_buf_get_name(buffer)
  for _, client in pairs(every()) do
    if client.name == "dogwood" then
      local params = { uri = address }
      local answer
      if vim.fn.has("nvim-0.11") == 1 then
        answer = client:request_sync("dogwood/source", params, 5000, buffer)
      else
        answer = client.request_sync("dogwood/source", params, 5000, buffer)
      end
      if answer and type(answer.result) == "string" then
        vim.bo[buffer].modifiable = true
        vim.api.nvim_buf_set_lines(buffer, 0, -1, false, vim.split(answer.result:gsub("\n$", ""), "\n"))
        vim.bo[buffer].buftype = "nofile"
        vim.bo[buffer].swapfile = false
        vim.bo[buffer].modified = false
        vim.bo[buffer].modifiable = false
        vim.bo[buffer].filetype = types[address:match("%.(%w+)$")] or ""
        vim.lsp.buf_attach_client(buffer, client.id)
        return
      end
    end
  end
  say("there is no text for " .. address, vim.log.levels.WARN)
end

local function open_sources()
  vim.api.nvim_create_autocmd("BufReadCmd", {
    group = vim.api.nvim_create_augroup("dogwood_source", { clear = true }),
    pattern = "dogwood://*",
    callback = function(event)
      show_source(event.buf)
    end,
  })
end

local function ask(command, arguments, answer)
  for _, client in pairs(attached()) do
    if client.name == "dogwood" then
      local params = { command = command, arguments = arguments }
      -- In 0.11 a request became a method of the client.
      if vim.fn.has("nvim-0.11") == 1 then
        return client:request("workspace/executeCommand", params, answer, 0)
      end
      return client.request("workspace/executeCommand", params, answer, 0)
    end
  end
  say("the language server is not running for this file", vim.log.levels.WARN)
end

-- Tests of the policy or test file being edited, all or those of one name.
function M.test(name)
  ask("dogwood.test", { vim.uri_from_bufnr(0), name }, show_tests)
end

-- The policy in plain English; of a line (from 0), the rule there.
function M.explain(line)
  ask("dogwood.explain", { vim.uri_from_bufnr(0), line }, show_explanation)
end

local function commands(buffer)
  local define = vim.api.nvim_buf_create_user_command
  define(buffer, "DogwoodTest", function(said)
    M.test(said.args ~= "" and said.args or nil)
  end, { nargs = "?", desc = "Run the tests of this policy" })
  define(buffer, "DogwoodExplain", function(said)
    M.explain(said.range > 0 and said.line1 - 1 or nil)
  end, { range = true, desc = "Explain this policy, or the rule of a line, in plain English" })
end

-- The client, as `vim.lsp.config` takes it. `over` is laid over it: `{ settings = { policySchema = … } }`.
function M.config(over)
  over = over or {}
  open_sources()
  local capabilities = vim.lsp.protocol.make_client_capabilities()
  capabilities.experimental = { dogwood = { source = true } }
  return vim.tbl_deep_extend("force", {
    name = "dogwood",
    cmd = { "dogwood-lsp" },
    filetypes = M.filetypes,
    root_markers = M.root_markers,
    init_options = over.settings,
    capabilities = capabilities,
    on_attach = function(_, buffer)
      commands(buffer)
    end,
    commands = {
      -- What a code lens asks for.
      ["dogwood.test"] = function(command)
        ask("dogwood.test", command.arguments, show_tests)
      end,
    },
  }, over)
end

local running = {}

-- Before 0.8 there was no `vim.lsp.start`: one client for each root.
local function start(config)
  if vim.lsp.start then
    return vim.lsp.start(config)
  end
  local id = running[config.root_dir]
  if id == nil or vim.lsp.get_client_by_id(id) == nil then
    id = vim.lsp.start_client(config)
    running[config.root_dir] = id
  end
  if id ~= nil then
    vim.lsp.buf_attach_client(0, id)
  end
end

local told = false

-- For every version: starts the server for each file of the four kinds.
function M.setup(over)
  local config = M.config(over)
  if type(config.cmd) == "table" and vim.fn.executable(config.cmd[1]) == 0 then
    if not told then
      told = true
      say(
        "`" .. config.cmd[1] .. "` is not on the PATH, so files are coloured but not checked. Build it in a checkout of Dogwood with "
          .. "`cargo install --path lsp --locked`, or give its path: require('dogwood').setup { cmd = { '/path/to/dogwood-lsp' } }",
        vim.log.levels.WARN
      )
    end
    return
  end
  if vim.lsp.config and vim.lsp.enable then
    vim.lsp.config("dogwood", config)
    vim.lsp.enable("dogwood")
    return
  end
  -- These keys are of 0.11 only.
  config.filetypes, config.root_markers = nil, nil
  vim.api.nvim_create_autocmd("FileType", {
    group = vim.api.nvim_create_augroup("dogwood", { clear = true }),
    pattern = M.filetypes,
    callback = function(event)
      if event.file:match("^dogwood://") then
        return
      end
      local own = vim.tbl_extend("force", config, { root_dir = root_of(event.file ~= "" and event.file or vim.fn.getcwd() .. "/x") })
      start(own)
    end,
  })
end

return M
