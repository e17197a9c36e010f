--- Ghost text in the current buffer: requested after the last key, drawn, shortened by typing through it, accepted.
---
--- One rule keeps it right: what is drawn and what is accepted is always text.rest(offer), computed from the buffer at
--- that moment. Neovim's own inline completion keeps the range of the request instead, and so corrupts text.

local menus = require("dg_lsp.menus")
local options = require("dg_lsp.options")
local say = require("dg_lsp.say")
local server = require("dg_lsp.server")
local status = require("dg_lsp.status")
local text = require("dg_lsp.text")

local M = {}
local api = vim.api
local space = api.nvim_create_namespace("dg_lsp.suggestion")
local AUTOMATIC, INVOKED = 2, 1

local offers = {} ---@type dg_lsp.Offer[] the newest answer; all at the same place
local index = 1 -- which of them is shown
local counted = false -- whether "(1/3)" is drawn after it
local drawn ---@type { buf: integer, rest: string? }? what the screen shows once it is drawn again
local seen = false -- whether the screen was drawn with one of the offers on it
local pending ---@type { client: vim.lsp.Client?, id: integer?, place: table, asked: boolean?, timer: uv.uv_timer_t? }?

--- The position of the cursor, with its buffer and the buffer's version.
local function here()
  local row, col = unpack(api.nvim_win_get_cursor(0))
  return { api.nvim_get_current_buf(), vim.b.changedtick, row, col }
end

--- Return whether ghost text may be on the screen: in Insert mode, with no completion menu.
local function free()
  return api.nvim_get_mode().mode == "i" and not menus.open()
end

---@return string?
local function rest()
  return offers[index] and free() and text.rest(offers[index]) or nil
end

--- Report to the server what became of ghost text, for its counts.
---@param buf integer
---@param kind "shown"|"tab"|"word"|"line"|"typed"|"dismissed"
---@param piece string
local function use(buf, kind, piece)
  local client = server.client(buf)
  if client then
    server.notify(client, "dg-lsp/used", {
      textDocument = { uri = vim.uri_from_bufnr(buf) },
      kind = kind,
      characters = vim.fn.strchars(piece),
    })
  end
end

local function erase()
  if drawn and api.nvim_buf_is_valid(drawn.buf) then
    api.nvim_buf_clear_namespace(drawn.buf, space, 0, -1)
  end
  drawn = nil
end

--- Draw ghost text at the cursor: its first line before the text after the cursor, its other lines below. Of closers
--- that are in the buffer the text in front is drawn before them, and the rest after them.
---@param ghost string
local function draw(ghost)
  for number, stretch in ipairs(text.stretches(offers[index])) do
    local lines = text.drawn(stretch)
    local first = { { lines[1], "DgLspGhost" } }
    if counted and number == 1 then
      table.insert(first, { (" (%d/%d)"):format(index, #offers), "DgLspHint" })
    end
    local below = vim.tbl_map(function(line)
      return { { line, "DgLspGhost" } }
    end, vim.list_slice(lines, 2))
    api.nvim_buf_set_extmark(0, space, stretch.row, stretch.col, {
      virt_text = first,
      virt_text_pos = "inline",
      virt_lines = #below > 0 and below or nil,
      hl_mode = "combine",
    })
  end
  drawn = { buf = api.nvim_get_current_buf(), rest = ghost }
end

--- Return whether texts were requested by a key at this very place and have not arrived yet.
local function asked()
  return pending and pending.asked and vim.deep_equal(here(), pending.place)
end

--- Say at the end of the cursor's line what one waits for: the start of the server or its engine, or the texts that
--- were asked for by a key.
local function draw_waiting()
  local waiting = status.waiting()
  if waiting == "" and asked() then
    waiting = "filling"
  end
  if waiting == "" or not free() or options.off(0) ~= "" then
    return
  end
  local row = api.nvim_win_get_cursor(0)[1] - 1
  local sign = { { "  dg-lsp: " .. waiting, "DgLspHint" } }
  api.nvim_buf_set_extmark(0, space, row, 0, { virt_text = sign, virt_text_pos = "eol" })
  drawn = { buf = api.nvim_get_current_buf() }
end

--- Draw what agrees with the buffer now, and nothing else.
---@return string? ghost
local function refresh()
  local ghost = rest()
  erase()
  if ghost then
    draw(ghost)
  else
    draw_waiting()
  end
  return ghost
end

--- Return whether nothing but a part of a word was typed at a place. The server hears of it and continues the fill,
--- whose text may begin with that word.
local function within_word(place)
  local buf, _, row, col = unpack(here())
  if buf ~= place[1] or row ~= place[3] or col <= place[4] then
    return false
  end
  return api.nvim_get_current_line():sub(place[4] + 1, col):find("^[%w_\128-\255]+$") ~= nil
end

--- Take the pending request back.
local function cancel()
  local old = pending
  pending = nil
  if old and old.timer then
    old.timer:stop()
    old.timer:close()
  end
  if old and old.id and old.client and not (free() and within_word(old.place)) then
    server.cancel(old.client, old.id)
  end
end

--- The offers in an answer: the items that begin at the cursor and replace nothing.
---@return dg_lsp.Offer[]
local function offers_in(result, position)
  local found = {}
  for _, item in ipairs(result and (result.items or result) or {}) do
    local range = item.range or { start = position, ["end"] = position }
    local new = type(item.insertText) == "string" and item.insertText ~= ""
    if new and vim.deep_equal(range.start, position) and vim.deep_equal(range["end"], position) then
      local offer = text.offer(item.insertText, item.pairs)
      offer.inside = item.command ~= nil and item.command.command == "dg-lsp.inside"
      table.insert(found, offer)
    end
  end
  return found
end

--- Ask for ghost text at the cursor. `show` is called with the offers, if nothing has changed in the meantime.
---@param kind integer
---@param show fun(found: dg_lsp.Offer[])
local function send(kind, show)
  local buf = api.nvim_get_current_buf()
  local client = server.client(buf)
  if not client or options.off(buf) ~= "" then
    return
  end
  local mine = { client = client, place = here(), asked = kind == INVOKED }
  pending = mine
  local params = vim.lsp.util.make_position_params(0, client.offset_encoding)
  params.context = { triggerKind = kind }
  local _, id = server.request(client, "textDocument/inlineCompletion", params, function(_, result)
    if pending ~= mine then
      return
    end
    pending = nil
    if vim.deep_equal(here(), mine.place) then
      show(offers_in(result, params.position))
    end
  end, buf)
  mine.id = id
end

--- Show an automatic answer.
local function offered(found)
  offers, index, counted, seen = found, 1, false, false
  refresh()
end

--- Ask again for ghost text that has got longer, and show it in place of the shown text that it begins with.
---@param uri string
function M.grown(uri)
  if pending or not free() or uri ~= vim.uri_from_bufnr(0) then
    return
  end
  local shown = rest() or ""
  send(AUTOMATIC, function(found)
    if found[1] and vim.startswith(found[1].text, shown) and (rest() or "") == shown then
      found[1].shown = shown ~= "" and seen
      offers, index, counted = found, 1, false
      refresh()
    end
  end)
end

--- Return whether something must follow at the cursor: in an empty line, after an opening bracket, `=` or `return`.
---@return boolean
local function must_follow()
  local col = api.nvim_win_get_cursor(0)[2]
  local before = api.nvim_get_current_line():sub(1, col)
  return vim.iter({ "^", "[%(%[{]", "[^=!<>]=", "%f[%w_]return" }):any(function(pattern)
    return before:find(pattern .. "%s*$") ~= nil
  end)
end

--- Ask for ghost text once no key has come for the option `debounce`, or at once where something must follow.
local function ask_soon()
  cancel()
  local own = options.get(0)
  if not (own.automatic and free()) or options.off(0) ~= "" or vim.fn.reg_executing() ~= "" then
    return
  end
  if own.debounce == 0 or must_follow() then
    return send(AUTOMATIC, offered)
  end
  local mine = { place = here() }
  pending = mine
  mine.timer = vim.defer_fn(function()
    if pending ~= mine then
      return
    end
    pending = nil
    if free() and vim.deep_equal(here(), mine.place) then
      send(AUTOMATIC, offered)
    end
  end, own.debounce)
end

--- The buffer or the cursor has changed.
local function moved()
  refresh()
  if pending and not vim.deep_equal(here(), pending.place) then
    cancel()
  end
end

--- A key was typed, or Insert mode has begun.
local function typed()
  if refresh() then
    cancel() -- the shown text begins with the typed one, so there is nothing to request
  elseif not asked() then -- Neovim may tell of the last letter only after that key
    local offer = offers[index]
    if offer and offer.shown and not offer.taken and vim.startswith(text.typed(offer) or "", offer.text) then
      use(offer.buf, "typed", offer.text)
    end
    offers = {}
    ask_soon()
  end
end

--- Return whether ghost text has been drawn and agrees with the buffer. A key that was pressed before the screen was
--- drawn was not meant for it.
---@return boolean
function M.visible()
  return seen and drawn ~= nil and drawn.rest ~= nil and rest() ~= nil
end

--- Put `piece` into the buffer at the cursor, with `new` in place of the closers `old` after it, and move the cursor
--- between the two.
---@param piece string
---@param old string
---@param new string
local function insert(piece, old, new)
  local row, col = unpack(api.nvim_win_get_cursor(0))
  local function reach(of)
    local lines = vim.split(of, "\n", { plain = true })
    return #lines - 1, (#lines == 1 and col or 0) + #lines[#lines]
  end
  local rows, stop = reach(old)
  local lines = vim.split(piece .. new, "\n", { plain = true })
  api.nvim_buf_set_text(0, row - 1, col, row - 1 + rows, stop, lines)
  rows, stop = reach(piece)
  api.nvim_win_set_cursor(0, { row + rows, stop })
end

--- Insert as a part of what `.` repeats, the closers apart, which a later part replaces. Only a paste joins that, so
--- ours takes the paste handler's place meanwhile.
---@param piece string
---@param old string
---@param new string
local function insert_repeatable(piece, old, new)
  if vim.fn.reg_recording() ~= "" then
    return insert(piece, old, new) -- the key itself is recorded, and a paste would be, too
  end
  local usual, done = vim.paste, false
  ---@diagnostic disable-next-line: duplicate-set-field
  vim.paste = function() -- luacheck: ignore 122
    done = true
    insert(piece, old, new)
    return true
  end
  local ok, why = pcall(api.nvim_paste, piece, false, -1)
  vim.paste = usual -- luacheck: ignore 122
  if not done then
    insert(piece, old, new)
  elseif not ok then
    error(why, 0)
  end
end

--- Move the cursor into the empty block that the text before it ends with. By keys, since a cursor that keys have moved
--- begins another change: `.` repeats either the block or the text written in it, and undo takes them back one by one.
local function go_inside()
  local count = text.inside()
  if count > 0 then
    api.nvim_feedkeys(vim.keycode(("<Up>"):rep(count) .. "<End>"), "in", false)
  end
end

--- Put a part of the ghost text into the buffer: text.whole, text.word or text.line of it. The brackets and strings
--- that the part opens are closed after the cursor, and the rest of the ghost text fits between.
---@param part fun(ghost: string): string
---@return boolean accepted
function M.accept(part)
  local ghost = M.visible() and rest()
  if not ghost then
    return false
  end
  local piece = part(ghost)
  cancel()
  local offer = offers[index]
  offer.taken = true
  local known, before = text.typed(offer)
  local count, old = #assert(known), {} ---@type integer, table<dg_lsp.Pair, true>
  for _, pair in ipairs(before or {}) do
    old[pair] = true
  end
  local after = text.open(offer, count + #piece, function(pair)
    return pair.open >= count or old[pair]
  end)
  offer.closed = {}
  for _, pair in ipairs(after) do
    offer.closed[pair] = true
  end
  insert_repeatable(piece, text.closers(offer, before or {}, count), text.closers(offer, after, count + #piece))
  use(0, part == text.word and "word" or part == text.line and "line" or "tab", piece)
  if offer.inside and piece == ghost then
    go_inside()
  end
  refresh()
  return true
end

--- Drop the ghost text and the request for it.
local function forget()
  offers = {}
  cancel()
  erase()
end

--- Hide the ghost text, and tell the server not to offer it here again.
---@return boolean dismissed
function M.dismiss()
  local ghost = M.visible() and rest()
  if not ghost then
    return false
  end
  local client = server.client(0)
  if client then
    local position = vim.lsp.util.make_position_params(0, client.offset_encoding).position
    server.notify(client, "dg-lsp/dismissed", {
      uri = vim.uri_from_bufnr(0),
      version = vim.lsp.util.buf_versions[api.nvim_get_current_buf()],
      position = position,
      text = ghost,
    })
    use(0, "dismissed", ghost)
  end
  forget()
  return true
end

--- Show the offer that is `step` further among those that agree with the buffer.
---@param step integer
local function turn(step)
  for _ = 1, #offers do
    index = (index - 1 + step) % #offers + 1
    if rest() then
      break
    end
  end
  counted = true
  refresh()
end

--- Show the next (1) or previous (-1) of several texts; they are asked for at the first time.
---@param step integer
function M.cycle(step)
  if counted and M.visible() then
    return turn(step)
  end
  local shown = rest()
  cancel()
  send(INVOKED, function(found)
    if #found == 0 then
      refresh()
      return say("nothing else is offered here; :DgLsp status says why")
    end
    offers, index, counted, seen = found, step == 1 and #found or 1, true, false
    for number, offer in ipairs(found) do
      if offer.text == shown then
        index = number
      end
    end
    turn(step)
  end)
  refresh()
end

--- Begin to watch keys, modes and menus. Called once, by plugin/dg_lsp.lua.
function M.watch()
  local group = api.nvim_create_augroup("dg_lsp.suggestion", {})
  local function on(events, run, pattern)
    api.nvim_create_autocmd(events, {
      group = group,
      pattern = pattern,
      callback = function(event)
        if drawn or pending or vim.tbl_contains(options.filetypes, vim.bo.filetype) then
          run(event)
        end
      end,
    })
  end
  on("TextChangedI", typed)
  on("ModeChanged", typed, "*:i") -- InsertEnter comes before the mode
  -- The menu may have gone without a key in the buffer.
  on("CompleteDone", function()
    vim.schedule(typed)
  end)
  on({ "CursorMovedI", "TextChangedP", "CompleteChanged" }, moved)
  on("ModeChanged", moved, "i*:*")
  on({ "BufLeave", "WinLeave", "CmdlineEnter", "TextChanged" }, forget)
  on("User", refresh, "DgLspStatus")
  menus.watch(group, moved, typed)
  on("LspDetach", function(event)
    local client = vim.lsp.get_client_by_id(event.data.client_id)
    if client and client.name == server.name and event.buf == api.nvim_get_current_buf() then
      forget() -- nobody would shorten or retract it any more
    end
  end)
  on("LspAttach", function()
    if free() then
      typed()
    end
  end)
  api.nvim_set_decoration_provider(space, {
    on_win = function(_, _, buf)
      local offer = drawn and drawn.rest and drawn.buf == buf and offers[index] or nil
      seen = seen or offer ~= nil
      if offer and not offer.shown then
        offer.shown = true
        vim.schedule(function()
          use(offer.buf, "shown", offer.text)
        end)
      end
      return false
    end,
  })
end

return M
