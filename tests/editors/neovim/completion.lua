-- Stubs of blink.cmp and nvim-cmp as other plug-ins see them: a menu of one entry that is no menu of Neovim's, their
-- events, and a mapping of <Tab> in place of an older one, which they call where no menu is open. _G.menu(true) opens
-- the menu, and false closes it. vim.g.completion_kind is "blink" or "cmp".
local ENTRY = "entry"
local shown = false
local listeners = {}

local function show(on)
  shown = on
  if vim.g.completion_kind == "blink" then
    return vim.api.nvim_exec_autocmds("User", { pattern = on and "BlinkCmpMenuOpen" or "BlinkCmpMenuClose" })
  end
  for _, listener in ipairs(listeners[on and "menu_opened" or "menu_closed"] or {}) do
    listener()
  end
end

if vim.g.completion_kind == "blink" then
  package.loaded["blink.cmp"] = {
    is_menu_visible = function()
      return shown
    end,
  }
else
  package.loaded["cmp"] = {
    core = {
      view = {
        visible = function()
          return shown or nil
        end,
      },
    },
    event = {
      on = function(_, name, listener)
        listeners[name] = listeners[name] or {}
        table.insert(listeners[name], listener)
      end,
    },
  }
end

_G.menu = function(on)
  show(on)
end

vim.api.nvim_create_autocmd("InsertEnter", {
  callback = function()
    local found = vim.fn.maparg("<Tab>", "i", false, true)
    if found.desc == "completion" then
      return
    end
    vim.keymap.set("i", "<Tab>", function()
      if shown then
        vim.api.nvim_paste(ENTRY, false, -1)
        return show(false)
      elseif found.callback then
        local call = vim.g.completion_kind == "blink" and vim.schedule or pcall
        return call(found.callback)
      end
      vim.api.nvim_feedkeys(vim.keycode("<Tab>"), "n", false)
    end, { buffer = true, desc = "completion" })
  end,
})
