--- Next edits: the place where the last edit should be repeated, marked with the old and the new text.
---
--- The key that accepts ghost text goes there, and pressed there it makes the edit; ghost text and menus come first. In
--- Normal mode it does so only while a mark is shown, and <Esc> leaves the place for good.

local menus = require("dg_lsp.menus")
local options = require("dg_lsp.options")
local server = require("dg_lsp.server")
local suggestion = require("dg_lsp.suggestion")
local text = require("dg_lsp.text")

local M = {}
local api = vim.api
local space = api.nvim_create_namespace("dg_lsp.next_edit")
local edge_space = api.nvim_create_namespace("dg_lsp.next_edit.edge")
local PAUSE = 20 -- milliseconds without a change before the server is asked

---@class dg_lsp.Next
---@field id string
---@field client vim.lsp.Client
---@field buf integer
---@field tick integer the buffer's version that the edit is for
---@field first integer[] row and column, from 0
---@field last integer[]
---@field new string
---@field label string

local shown ---@type dg_lsp.Next?
local seen = false -- whether the screen was drawn since; a key that was pressed before was not meant for it
local timer ---@type uv.uv_timer_t?
local asked = 0 -- the number of the newest question
local mapped = {} ---@type table<integer, table<string, table>> buffer -> key -> the mapping that it had

--- Return whether next edits are on in a buffer.
---@param buf integer
local function on(buf)
  local settings = options.get(buf).settings
  return settings.nextEdit ~= false and settings.next_edit ~= false and options.off(buf) == ""
end

--- Give a buffer the mappings back that it had before a mark was shown.
local function unmap()
  for buf, keys in pairs(mapped) do
    if api.nvim_buf_is_loaded(buf) then
      api.nvim_buf_call(buf, function()
        for key, earlier in pairs(keys) do
          pcall(vim.keymap.del, "n", key, { buffer = buf })
          if earlier.buffer == 1 then
            vim.fn.mapset("n", false, earlier)
          end
        end
      end)
    end
  end
  mapped = {}
end

--- Map the keys of Normal mode in the current buffer while a mark is shown.
local function map()
  local buf, keys = api.nvim_get_current_buf(), options.get(0).keys
  local accept = keys and keys.accept
  if mapped[buf] or not accept or not server.client(buf) then
    return
  end
  mapped[buf] = {}
  for key, run in pairs({ [accept] = M.go, ["<Esc>"] = M.leave }) do
    mapped[buf][key] = vim.fn.maparg(key, "n", false, true)
    vim.keymap.set("n", key, function()
      if not run() then
        vim.schedule(M.clear)
        api.nvim_feedkeys(vim.keycode(key), "n", false)
      end
    end, { buffer = buf, nowait = true, silent = true, desc = "dg-lsp next edit" })
  end
end

--- Return the edit that is marked, if its buffer is still as it was when the server was asked.
---@return dg_lsp.Next?
local function current()
  local fits = shown and api.nvim_buf_is_loaded(shown.buf) and api.nvim_buf_get_changedtick(shown.buf) == shown.tick
  return fits and shown or nil
end

--- Take the mark away.
function M.clear()
  if shown and api.nvim_buf_is_valid(shown.buf) then
    api.nvim_buf_clear_namespace(shown.buf, space, 0, -1)
  end
  for _, buf in ipairs(api.nvim_list_bufs()) do
    api.nvim_buf_clear_namespace(buf, edge_space, 0, -1)
  end
  shown = nil
  unmap()
end

--- Say at the edge of the window where the place is, if it is out of sight.
local function draw_edge()
  local found, buf = current(), api.nvim_get_current_buf()
  api.nvim_buf_clear_namespace(buf, edge_space, 0, -1)
  if not found then
    return
  end
  local top, bottom, line = vim.fn.line("w0"), vim.fn.line("w$"), found.first[1] + 1
  local own = found.buf == buf
  if own and top <= line and line <= bottom then
    return
  end
  local where = own and "" or vim.fn.strtrans(vim.fn.fnamemodify(api.nvim_buf_get_name(found.buf), ":t")) .. " "
  local sign = { { (" %sline %d: %s "):format(where, line, found.label), "DgLspNext" } }
  local row = own and line < top and top or bottom
  api.nvim_buf_set_extmark(buf, edge_space, row - 1, 0, { virt_text = sign, virt_text_pos = "right_align" })
end

--- Show the old and the new text at the place.
---@param found dg_lsp.Next
local function draw(found)
  local new = vim.split(found.new, "\n", { plain = true })
  if found.first[1] ~= found.last[1] or found.first[2] ~= found.last[2] then
    api.nvim_buf_set_extmark(found.buf, space, found.first[1], found.first[2], {
      end_row = found.last[1],
      end_col = found.last[2],
      hl_group = "DgLspReplaced",
    })
  end
  if found.new ~= "" then
    local more = #new > 1 and "…" or ""
    api.nvim_buf_set_extmark(found.buf, space, found.last[1], found.last[2], {
      virt_text = { { new[1] .. more, "DgLspNext" } },
      virt_text_pos = "inline",
    })
  end
  draw_edge()
  map()
end

--- Return the versions of all loaded buffers.
---@return table<integer, integer>
local function ticks_now()
  local ticks = {}
  for _, buf in ipairs(api.nvim_list_bufs()) do
    ticks[buf] = api.nvim_buf_is_loaded(buf) and api.nvim_buf_get_changedtick(buf) or nil
  end
  return ticks
end

--- Return the edit in an answer, with places as Neovim counts them; nil where it is for another text than the buffer's.
--- The server may not have had the last changes of a buffer that is not the current one.
---@param edit table
---@param client vim.lsp.Client
---@param ticks table<integer, integer> those of the buffers when the server was asked
---@return dg_lsp.Next?
local function found_in(edit, client, ticks)
  local buf = vim.uri_to_bufnr(edit.uri)
  local late = edit.version and edit.version ~= vim.lsp.util.buf_versions[buf]
  if not ticks[buf] or ticks[buf] ~= ticks_now()[buf] or late then
    return nil
  end
  local function place(position)
    local line = api.nvim_buf_get_lines(buf, position.line, position.line + 1, false)[1] or ""
    return { position.line, text.byte(line, position.character, client.offset_encoding) }
  end
  return {
    id = edit.id,
    client = client,
    buf = buf,
    tick = ticks[buf],
    first = place(edit.range.start),
    last = place(edit.range["end"]),
    new = edit.newText:gsub("\r", ""),
    label = edit.label,
  }
end

--- Ask where the last edit should be repeated, and mark the place.
local function ask()
  local buf = api.nvim_get_current_buf()
  local client = server.client(buf)
  if not client or not on(buf) or vim.fn.reg_executing() ~= "" then
    return
  end
  asked = asked + 1
  local mine, ticks = asked, ticks_now()
  local params = vim.lsp.util.make_position_params(0, client.offset_encoding)
  if api.nvim_get_mode().mode:sub(1, 1) ~= "i" then
    params.position.character = 0 -- the cursor would be on the last letter, as if the word was half typed
  end
  server.request(client, "dg-lsp/nextEdit", params, function(_, result)
    local same = mine == asked and buf == api.nvim_get_current_buf() and ticks[buf] == vim.b.changedtick
    if not same then
      return
    end
    M.clear()
    local edit = type(result) == "table" and type(result.edit) == "table" and result.edit
    shown, seen = edit and found_in(edit, client, ticks) or nil, false
    if shown then
      draw(shown)
    end
  end, buf)
end

--- A buffer has changed: take the mark away, and ask once no change comes for a while.
local function changed()
  if shown and not current() then
    M.clear()
  end
  asked = asked + 1
  timer = timer or assert(vim.uv.new_timer())
  timer:start(PAUSE, 0, vim.schedule_wrap(ask))
end

--- Return whether the cursor is in the line of the place.
---@param found dg_lsp.Next
local function here(found)
  return found.buf == api.nvim_get_current_buf() and api.nvim_win_get_cursor(0)[1] == found.first[1] + 1
end

--- Return whether the cursor is in the blanks before a line's text in Insert mode, where <Tab> indents.
local function indents()
  local before = api.nvim_get_current_line():sub(1, api.nvim_win_get_cursor(0)[2])
  return api.nvim_get_mode().mode == "i" and not before:find("%S")
end

--- Return whether a place is shown that the accepting key may go to: neither ghost text nor a menu is in the way.
---@return boolean
function M.visible()
  local found = current()
  if not found or (indents() and not here(found)) then
    return false
  end
  return seen and not menus.open() and not suggestion.visible()
end

--- Go to the place.
---@param found dg_lsp.Next
local function jump(found)
  local window = found.buf == api.nvim_get_current_buf() and 0 or vim.fn.bufwinid(found.buf)
  vim.cmd("normal! m'")
  if window > 0 then
    api.nvim_set_current_win(window)
  elseif window < 0 then
    api.nvim_win_set_buf(0, found.buf)
  end
  api.nvim_win_set_cursor(0, { found.first[1] + 1, found.first[2] })
  draw_edge()
  map()
end

--- Make the edit, as an undo step of its own.
---@param found dg_lsp.Next
local function take(found)
  local lines = vim.split(found.new, "\n", { plain = true })
  local first, last = found.first, found.last
  M.clear()
  -- Setting this option ends the step before it.
  vim.bo.undolevels = vim.bo.undolevels
  api.nvim_buf_set_text(0, first[1], first[2], last[1], last[2], lines)
  vim.bo.undolevels = vim.bo.undolevels
  local column = (#lines == 1 and first[2] or 0) + #lines[#lines]
  api.nvim_win_set_cursor(0, { first[1] + #lines, column })
end

--- Go to the place, or make the edit if the cursor is in its line.
---@return boolean done
function M.go()
  local found = M.visible() and current()
  if not found then
    return false
  end
  if here(found) then
    take(found)
  else
    jump(found)
  end
  return true
end

--- Leave the place for good.
---@return boolean done
function M.leave()
  local found = current()
  if not found then
    return false
  end
  server.notify(found.client, "dg-lsp/nextEdit/dismiss", { id = found.id })
  M.clear()
  vim.schedule(ask)
  return true
end

--- Begin to watch changes. Called once, by plugin/dg_lsp.lua.
function M.watch()
  local group = api.nvim_create_augroup("dg_lsp.next_edit", {})
  local function watch(events, run)
    api.nvim_create_autocmd(events, {
      group = group,
      callback = function()
        if shown or vim.tbl_contains(options.filetypes, vim.bo.filetype) then
          run()
        end
      end,
    })
  end
  watch({ "TextChanged", "TextChangedI", "TextChangedP" }, changed)
  watch({ "WinScrolled", "BufEnter", "CursorMoved", "CursorMovedI" }, function()
    if shown then
      draw_edge()
      map()
    end
  end)
  api.nvim_create_autocmd({ "LspDetach", "BufUnload" }, {
    group = group,
    callback = function(event)
      if shown and shown.buf == event.buf then
        M.clear()
      end
    end,
  })
  api.nvim_set_decoration_provider(space, {
    on_win = function()
      seen = true
      return false
    end,
  })
end

return M
