--- A change that the user must confirm: shown as a diff in a window of its own, and made only if the user takes it.

local say = require("dg_lsp.say")

local M = {}
local api = vim.api
local BLIND = 250 -- milliseconds from the moment a diff is drawn in which keys are pressed without having read it
local LATE, ROUNDS = 500, 20 -- milliseconds of such a wait that show that Neovim was stopped or busy; waits at most
local TAKE, LEAVE = "y", { "n", "q", "<Esc>", "<CR>", "<C-c>" }

--- The text edits of a workspace edit, which is of one document.
---@param edit lsp.WorkspaceEdit
---@return lsp.TextEdit[]
local function edits_of(edit)
  if edit.documentChanges then
    return edit.documentChanges[1].edits
  end
  return select(2, next(edit.changes))
end

--- The lines of a buffer as they are, and as they would be after some edits.
---@param buf integer
---@param edits lsp.TextEdit[]
---@param encoding string
local function both(buf, edits, encoding)
  local before = api.nvim_buf_get_lines(buf, 0, -1, false)
  local copy = api.nvim_create_buf(false, true)
  api.nvim_buf_set_lines(copy, 0, -1, false, before)
  vim.lsp.util.apply_text_edits(edits, copy, encoding)
  local after = api.nvim_buf_get_lines(copy, 0, -1, false)
  api.nvim_buf_delete(copy, { force = true })
  return before, after
end

--- The diff as lines, without the heads of its hunks.
---@param before string[]
---@param after string[]
---@return string[]
local function diff_of(before, after)
  local diff = vim.text and vim.text.diff or vim.diff
  local text = diff(table.concat(before, "\n") .. "\n", table.concat(after, "\n") .. "\n", { ctxlen = 3 })
  return vim.tbl_filter(function(line)
    return line ~= "" and not vim.startswith(line, "@@")
  end, vim.split(text, "\n"))
end

--- Open a window at the cursor that shows some lines.
---@param lines string[]
---@param why string
---@return integer win
---@return integer buf
local function open(lines, why)
  local shown = api.nvim_create_buf(false, true)
  api.nvim_buf_set_lines(shown, 0, -1, false, lines)
  vim.bo[shown].filetype = "diff"
  vim.bo[shown].bufhidden = "wipe"
  vim.bo[shown].modifiable = false
  local width = #why + 12
  for _, line in ipairs(lines) do
    width = math.max(width, vim.fn.strdisplaywidth(line))
  end
  local win = api.nvim_open_win(shown, true, {
    relative = "cursor",
    row = 1,
    col = 0,
    width = math.min(width, vim.o.columns - 4),
    height = math.min(#lines, math.max(vim.o.lines - 8, 3)),
    style = "minimal",
    border = "rounded",
    title = (" dg-lsp: %s "):format(why),
  })
  vim.wo[win].wrap = false
  return win, shown
end

--- Draw the screen, and drop all keys that are pressed before anybody can have read it. They are taken from the queue
--- and not compared with a clock when they run: a Neovim that was busy or stopped gets them long after. Keys typed
--- into a terminal that was stopped, too, come later still, so the wait begins again after such a pause.
---@return boolean interrupted
local function draw_and_drop_keys()
  vim.cmd.redraw()
  for _ = 1, ROUNDS do
    local began = vim.uv.hrtime()
    local _, why = vim.wait(BLIND)
    local free, key
    repeat
      free, key = pcall(vim.fn.getchar, 0)
    until free and key == 0
    if why == -2 then
      return true
    elseif vim.uv.hrtime() - began < LATE * 1e6 then
      break
    end
  end
  return false
end

--- Show what an edit would change, and make it if the user takes it. Nothing is changed before that, and whatever the
--- user does but press `y` leaves the text as it is.
---@param buf integer
---@param client vim.lsp.Client
---@param edit lsp.WorkspaceEdit
---@param why string
---@param tick? integer the version of the buffer when the edit was asked for; by default the present one
function M.ask(buf, client, edit, why, tick)
  tick = tick or api.nvim_buf_get_changedtick(buf)
  local function another()
    if not api.nvim_buf_is_loaded(buf) or api.nvim_buf_get_changedtick(buf) ~= tick then
      say("nothing changed: the text is another one by now; ask again")
      return true
    end
    return false
  end
  if another() then
    return
  elseif buf ~= api.nvim_get_current_buf() or not api.nvim_get_mode().mode:find("^[nvV\22]") then
    return say(("nothing changed: %s; ask again and wait in Normal mode to see how"):format(why))
  end
  local lines = diff_of(both(buf, edits_of(edit), client.offset_encoding))
  local win, shown = open(lines, why)

  local function close()
    if api.nvim_win_is_valid(win) then
      api.nvim_win_close(win, true)
    end
  end
  local function map(key, run)
    vim.keymap.set({ "n", "x" }, key, function()
      close()
      run()
    end, { buffer = shown, nowait = true })
  end
  map(TAKE, function()
    if not another() then
      vim.lsp.util.apply_workspace_edit(edit, client.offset_encoding)
    end
  end)
  for _, key in ipairs(LEAVE) do
    map(key, function()
      say("left as it was")
    end)
  end
  api.nvim_create_autocmd("WinLeave", { buffer = shown, once = true, callback = vim.schedule_wrap(close) })
  if draw_and_drop_keys() then
    close()
    say("left as it was")
  elseif api.nvim_win_is_valid(win) then
    api.nvim_win_set_config(win, { footer = " y takes it, n leaves it " })
  end
end

return M
