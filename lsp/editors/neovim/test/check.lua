-- Whether files get their types and their colours. Run: nvim --headless -u NONE -S test/check.lua, in this folder.

local here = vim.fn.fnamemodify(vim.fn.resolve(vim.fn.expand("<sfile>:p")), ":h:h")
vim.opt.runtimepath:prepend(here)
vim.cmd("filetype plugin indent on | syntax enable")

local failures = {}
local checks = 0

local function check(good, text)
  checks = checks + 1
  if not good then
    failures[#failures + 1] = text
  end
end

local function open(path)
  vim.cmd("edit! " .. vim.fn.fnameescape(path))
end

local function group_at(line, column)
  return vim.fn.synIDattr(vim.fn.synID(line, column, 1), "name")
end

local checkout = vim.fn.fnamemodify(here, ":h:h:h")

-- Each file has its type, and no word of the examples is left without colour, or coloured as a mistake.
local types = { dw = "dogwood", cedarschema = "cedarschema", dwschema = "dwschema", ["dwtest.toml"] = "dwtest" }
for ending, filetype in pairs(types) do
  local files = vim.fn.globpath(checkout .. "/docs," .. checkout .. "/stdlib-policies", "**/*." .. ending, false, true)
  check(#files > 0, "no example ends in ." .. ending)
  for _, file in ipairs(files) do
    open(file)
    check(vim.bo.filetype == filetype, file .. " is of type " .. vim.bo.filetype)
    check(vim.b.current_syntax == filetype, file .. " has no syntax")
    check(vim.bo.commentstring ~= "/*%s*/", file .. " has no way to comment")
    for number, line in ipairs(vim.api.nvim_buf_get_lines(0, 0, -1, false)) do
      for column = 1, filetype == "dwtest" and 0 or #line do
        local group = group_at(number, column)
        local blank = line:sub(column, column):match("%s")
        if not blank and (group == "" or group:match("Bad") or group:match("Error") or group:match("Temporal$")) then
          check(false, string.format("%s:%d:%d has the group '%s': %s", file, number, column, group, line))
          break
        end
      end
    end
  end
end

-- Each keyword has the colour of a keyword, and a name that looks like one has not: the words that VS Code is checked with.
local words = vim.json.decode(table.concat(vim.fn.readfile(here .. "/../vscode/test/words.json"), "\n"))

local function marked(filetype, text)
  vim.cmd("enew!")
  local from = text:find("«", 1, true)
  local wanted = text:match("«(.-)»")
  local plain = text:gsub("«", ""):gsub("»", "")
  vim.api.nvim_buf_set_lines(0, 0, -1, false, vim.split(plain, "\n"))
  vim.bo.filetype = filetype
  local before = plain:sub(1, from - 1)
  local _, line = before:gsub("\n", "")
  local column = #before:match("[^\n]*$") + 1
  return wanted, group_at(line + 1, column)
end

local keyword = { Effect = 1, Clause = 1, Word = 1, Conditional = 1, Define = 1, TemporalKey = 1, TemporalWord = 1, Quantifier = 1 }
for _, name in ipairs({ "Declare", "Builtin", "Window", "Event", "Decision", "Pin", "Error" }) do
  keyword[name] = 1
end
for _, filetype in ipairs({ "dogwood", "cedarschema", "dwschema" }) do
  for word, text in pairs(words[filetype]) do
    local wanted, group = marked(filetype, text)
    check(wanted == word and keyword[group:gsub("^" .. filetype, "")], string.format("%s in `%s` is %s", word, text, group))
  end
  for _, text in ipairs(words.names[filetype]) do
    local wanted, group = marked(filetype, text)
    check(group ~= "" and not keyword[group:gsub("^" .. filetype, "")], string.format("%s in `%s` is %s", wanted, text, group))
  end
end

-- What a run of tests is said to be.
local dogwood = require("dogwood")
local text, entries = dogwood.summary({ tests = 2, passed = 1, failed = 1, failures = {
  {
    file = vim.uri_from_fname(checkout .. "/docs/examples/push-after-tests/policy.dwtest.toml"),
    test = "push waits for the tests",
    at = "event 1",
    message = "expected allow, got deny",
    why = { "denied by push_after_tests" },
  },
} })
check(text == "1 of 2 tests failed", text)
check(entries[1].text == "push waits for the tests · event 1 · expected allow, got deny · denied by push_after_tests", entries[1].text)
check(entries[1].lnum > 1, "the test was not found in its file")
check(dogwood.summary({ tests = 1, passed = 1, failed = 0, failures = {} }) == "1 test passed", "one test")

-- A server that is not there is said with what to do next.
local said = {}
vim.notify = function(message)
  said[#said + 1] = message
end
dogwood.setup({ cmd = { "no-such-server" } })
dogwood.setup({ cmd = { "no-such-server" } })
check(#said == 1 and said[1]:find("cargo install --path lsp --locked", 1, true), vim.inspect(said))

-- From 0.11 on Neovim is told what to start, and starts it itself.
local configured, enabled
local config, enable = vim.lsp.config, vim.lsp.enable
vim.lsp.config = function(name, given)
  configured = { name, given }
end
vim.lsp.enable = function(name)
  enabled = name
end
dogwood.setup({ cmd = { "nvim" }, settings = { policySchema = "a.cedarschema" } })
vim.lsp.config, vim.lsp.enable = config, enable
check(configured[1] == "dogwood" and enabled == "dogwood", "it was not enabled")
check(vim.deep_equal(configured[2].cmd, { "nvim" }), "another program is started")
check(vim.deep_equal(configured[2].filetypes, { "dogwood", "cedarschema", "dwschema", "dwtest" }), "other files")
check(configured[2].init_options.policySchema == "a.cedarschema", "the settings are not handed over")
check(dofile(here .. "/lsp/dogwood.lua").cmd[1] == "dogwood-lsp", "lsp/dogwood.lua is no configuration")

for _, failure in ipairs(failures) do
  print(failure .. "\n")
end
print(string.format("%d passed, %d failed\n", checks - #failures, #failures))
vim.cmd(#failures == 0 and "qall!" or "cquit!")
