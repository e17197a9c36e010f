--- Keys for ghost text and next edits in the buffers that dg-lsp serves. Without them, each does what it did before.

local next_edit = require("dg_lsp.next_edit")
local options = require("dg_lsp.options")
local suggestion = require("dg_lsp.suggestion")
local text = require("dg_lsp.text")

local M = {}

--- Each action: its <Plug> name, and what runs. An accept is an undo step of its own, by <C-g>u before and after it.
local actions = {
  accept = { "accept", '<C-g>u<Cmd>lua require("dg_lsp.keys").accept("whole")<CR><C-g>u' },
  accept_word = { "accept-word", '<C-g>u<Cmd>lua require("dg_lsp.keys").accept("word")<CR><C-g>u' },
  accept_line = { "accept-line", '<C-g>u<Cmd>lua require("dg_lsp.keys").accept("line")<CR><C-g>u' },
  next = { "next", '<Cmd>lua require("dg_lsp.suggestion").cycle(1)<CR>' },
  previous = { "previous", '<Cmd>lua require("dg_lsp.suggestion").cycle(-1)<CR>' },
  dismiss = { "dismiss", '<Cmd>lua require("dg_lsp.suggestion").dismiss()<CR>' },
  next_edit = { "next-edit", '<Cmd>lua require("dg_lsp.next_edit").go()<CR>' },
  leave_edit = { "leave-edit", '<Cmd>lua require("dg_lsp.next_edit").leave()<CR>' },
}
-- What a key does where there is no ghost text and a next edit is marked.
local marked = { accept = "next-edit", dismiss = "leave-edit" }

---@param part "whole"|"word"|"line"
function M.accept(part)
  suggestion.accept(text[part])
end

--- Define the <Plug> mappings. Called once, by plugin/dg_lsp.lua.
function M.plugs()
  for _, action in pairs(actions) do
    local modes = action[1]:find("edit$") and { "i", "n" } or "i"
    vim.keymap.set(modes, ("<Plug>(dg-lsp-%s)"):format(action[1]), action[2], { silent = true })
  end
end

--- Return whether the user or a plug-in has a global mapping for a key in Insert mode.
---@param key string
---@return boolean
local function is_mapped(key)
  local raw = vim.keycode(key)
  return vim.iter(vim.api.nvim_get_keymap("i")):any(function(found)
    return found.lhsraw == raw or found.lhsrawalt == raw
  end)
end

--- Do what `key` did before, from within the mapping of a completion plug-in that has taken the place of ours and calls
--- ours where it has no menu.
---@param earlier table
---@param key string
local function fall_back(earlier, key)
  local keys = earlier.rhs or key
  if earlier.callback then
    keys = earlier.callback()
  elseif earlier.expr == 1 then
    keys = vim.api.nvim_eval(keys)
  end
  if earlier.expr == 1 or not earlier.callback then
    vim.api.nvim_feedkeys(vim.keycode(keys or ""), earlier.noremap == 0 and "im" or "in", false)
  end
end

--- Map `key` in a buffer to an action. With no ghost text and no next edit it does what it did before.
---
--- The choice is made when the mapping runs. An <expr> mapping would make it too early: Neovim evaluates it while it
--- looks ahead, before the key that was typed just before is in the buffer. What the key did before is found by taking
--- this mapping away until the key is done, so that mappings and abbreviations work as they always do.
---@param buf integer
---@param key string
---@param action string
local function map(buf, key, action)
  local desc = "dg-lsp " .. action
  local earlier = vim.api.nvim_buf_call(buf, function()
    return vim.fn.maparg(key, "i", false, true)
  end)
  if earlier.desc == desc then
    return
  end
  vim.keymap.set("i", key, function()
    local asks = (action == "next" or action == "previous") and earlier.buffer ~= 1 and not is_mapped(key)
    local ghost = suggestion.visible() or asks
    if ghost or (marked[action] and next_edit.visible()) then
      local plug = vim.keycode(("<Plug>(dg-lsp-%s)"):format(ghost and action or marked[action]))
      return vim.api.nvim_feedkeys(plug, "im", false)
    end
    if vim.fn.maparg(key, "i", false, true).desc ~= desc then
      return fall_back(earlier, key)
    end
    vim.keymap.del("i", key, { buffer = buf })
    if earlier.buffer == 1 then
      vim.fn.mapset("i", false, earlier)
    end
    vim.api.nvim_feedkeys(vim.keycode(key), "im", false)
    -- Runs when no more keys wait.
    vim.schedule(function()
      if vim.api.nvim_buf_is_valid(buf) then
        map(buf, key, action)
      end
    end)
  end, { buffer = buf, silent = true, desc = desc })
end

--- Define the keys of the option `keys` in a buffer.
---@param buf integer
function M.define(buf)
  local keys = options.get(buf).keys
  for name, key in pairs(keys or {}) do
    if key and actions[name] then
      map(buf, key, actions[name][1])
    end
  end
end

return M
