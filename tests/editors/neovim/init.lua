-- The least that a Neovim 0.12 user writes for dg-lsp. The tests give the server's command in g:dg_lsp_command.
vim.o.swapfile = false
vim.o.termguicolors = true -- the highlighting of ghost text has no colour for other terminals

vim.lsp.config("dg-lsp", {
  cmd = vim.g.dg_lsp_command,
  filetypes = { "python" },
})
vim.lsp.enable("dg-lsp")
vim.lsp.inline_completion.enable()

vim.keymap.set("i", "<Tab>", function()
  return vim.lsp.inline_completion.get() and "" or "<Tab>"
end, { expr = true, desc = "Accept the ghost text" })
