--- Messages to the user that never ask for a key.

--- Show a message. One that does not fit is cut, since Neovim would stop and ask for <Enter>; `:DgLsp status` has it.
---@param message string
---@param level? integer of vim.log.levels; INFO if left out
return function(message, level)
  local text = "dg-lsp: " .. message:gsub("%s*\n%s*", " ")
  local space = vim.v.echospace
  require("dg_lsp.status").said(text)
  if vim.fn.strdisplaywidth(text) <= space then
    return vim.notify(text, level or vim.log.levels.INFO)
  end
  local more = "… :DgLsp status"
  local short = vim.fn.strcharpart(text, 0, math.max(space - #more, 20)) .. more
  vim.api.nvim_echo({ { short, level and "WarningMsg" or "" } }, true, {})
end
