--- Messages to the user that never ask for a key.

local api = vim.api

local unread ---@type [string, string][]?

--- In Insert mode Neovim draws `-- INSERT --` over a message before anybody reads it: show the last one once more
--- when the mode is left.
---@param chunks [string, string][]
local function when_read(chunks)
  if not (vim.o.showmode and api.nvim_get_mode().mode:find("^[iR]")) then
    return
  end
  if not unread then
    local show = vim.schedule_wrap(function()
      api.nvim_echo(unread, false, {})
      unread = nil
    end)
    api.nvim_create_autocmd("InsertLeave", { once = true, callback = show })
  end
  unread = chunks
end

--- Show a message. One that does not fit is cut, since Neovim would stop and ask for <Enter>; `:DgLsp status` has it.
---@param message string
---@param level? integer of vim.log.levels; INFO if left out
return function(message, level)
  local text = "dg-lsp: " .. message:gsub("%s*\n%s*", " ")
  require("dg_lsp.status").said(text)
  level = level or vim.log.levels.INFO
  local highlight = level >= vim.log.levels.WARN and "WarningMsg" or ""
  local space = vim.v.echospace
  if vim.fn.strdisplaywidth(text) > space then
    local more = "… :DgLsp status"
    text = vim.fn.strcharpart(text, 0, math.max(space - #more, 20)) .. more
    api.nvim_echo({ { text, highlight } }, true, {})
  else
    vim.notify(text, level)
  end
  when_read({ { text, highlight } })
end
