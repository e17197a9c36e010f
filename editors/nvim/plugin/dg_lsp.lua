-- Starts dg-lsp for the filetypes that it knows. All of it can be changed by vim.g.dg_lsp; see :help dg-lsp.
if vim.g.loaded_dg_lsp then
  return
end
vim.g.loaded_dg_lsp = true

if vim.fn.has("nvim-0.10") == 0 then
  vim.notify("dg-lsp needs Neovim 0.12; nothing of it works in this one, which is older than 0.10", vim.log.levels.WARN)
  return
end

require("dg_lsp.highlight").define()
require("dg_lsp.keys").plugs()
require("dg_lsp.suggestion").watch()
require("dg_lsp.next_edit").watch()
require("dg_lsp.fill").watch()
require("dg_lsp.places").watch()
require("dg_lsp.model").watch()
require("dg_lsp.command").define()
vim.api.nvim_create_autocmd("ColorScheme", {
  group = vim.api.nvim_create_augroup("dg_lsp.highlight", {}),
  callback = function()
    require("dg_lsp.highlight").define()
  end,
})

if vim.lsp.enable then
  vim.lsp.enable("dg_lsp")
else
  vim.api.nvim_create_autocmd("FileType", {
    group = vim.api.nvim_create_augroup("dg_lsp.start", {}),
    callback = function(event)
      require("dg_lsp.server").attach(event.buf)
    end,
  })
end
