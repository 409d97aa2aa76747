-- What Neovim 0.11 and later asks for: `vim.lsp.enable("dogwood")` is all that is left to say.

return require("dogwood").config()
