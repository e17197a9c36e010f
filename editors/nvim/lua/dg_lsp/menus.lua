--- Completion menus: Neovim's own, and those of blink.cmp and nvim-cmp, which are windows of their own.

local M = {}

--- Return whether a completion menu is open.
---@return boolean
function M.open()
  local blink, cmp = package.loaded["blink.cmp"], package.loaded["cmp"]
  return vim.fn.pumvisible() == 1
    or (blink ~= nil and blink.is_menu_visible ~= nil and blink.is_menu_visible())
    or (cmp ~= nil and cmp.core ~= nil and cmp.core.view:visible())
    or false -- in place of nil
end

--- Call `opened` and `closed` when a menu of blink.cmp or nvim-cmp opens or closes; Neovim's own has autocommands.
---@param group integer
---@param opened fun()
---@param closed fun()
function M.watch(group, opened, closed)
  local shown = false -- nvim-cmp closes its menu over and over
  local soon_opened = vim.schedule_wrap(function()
    shown = true
    opened()
  end)
  local soon_closed = vim.schedule_wrap(function()
    if shown and not M.open() then
      shown = false
      closed()
    end
  end)
  local function on(events, pattern, callback)
    vim.api.nvim_create_autocmd(events, { group = group, pattern = pattern, callback = callback })
  end
  on("User", "BlinkCmpMenuOpen", soon_opened)
  on("User", "BlinkCmpMenuClose", soon_closed)
  local watched -- nvim-cmp may be loaded at any time
  on("InsertEnter", "*", function()
    local cmp = package.loaded["cmp"]
    if cmp and cmp.event and watched ~= cmp then
      watched = cmp
      cmp.event:on("menu_opened", soon_opened)
      cmp.event:on("menu_closed", soon_closed)
    end
  end)
end

return M
