--- Ghost text as text: its rest after typing, its first word and line, and how it is drawn.
--- Nothing here changes a buffer.

local M = {}
local api = vim.api

--- An offer: a text that the server would put at one position of a buffer, and the text around that position.
---@class dg_lsp.Offer
---@field buf integer
---@field row integer counted from 0
---@field col integer bytes
---@field before string the row's text before the place
---@field after string the row's text after it
---@field count integer the buffer's number of lines
---@field text string
---@field pairs dg_lsp.Pair[] the brackets and strings of the text, those that open first in front
---@field closed table<dg_lsp.Pair, true> those that an accepted part has opened and that are closed after the cursor
---@field inside? boolean whether the cursor belongs into the empty block that the text ends with
---@field shown? boolean whether the screen was drawn with it
---@field taken? boolean whether something of it was put into the buffer by a key

--- A bracket or string of a text: the bytes before it, before its closer, and up to the closer's end.
---@class dg_lsp.Pair
---@field open integer
---@field close integer
---@field stop integer

--- An offer of `text` at the cursor of the current window.
---@param text string
---@param units? integer[][] its pairs as the server gives them, in UTF-16 code units
---@return dg_lsp.Offer
function M.offer(text, units)
  local buf = api.nvim_get_current_buf()
  local row, col = unpack(api.nvim_win_get_cursor(0))
  local line = api.nvim_get_current_line()
  return {
    buf = buf,
    row = row - 1,
    col = col,
    before = line:sub(1, col),
    after = line:sub(col + 1),
    count = api.nvim_buf_line_count(buf),
    text = text,
    pairs = vim.tbl_map(function(pair)
      local open, close, stop = unpack(vim.tbl_map(function(unit)
        return M.byte(text, unit, "utf-16")
      end, pair))
      return { open = open, close = close, stop = stop }
    end, units or {}),
    closed = {},
  }
end

--- The closer of a pair once `count` bytes of the text are in the buffer: with its line end, if it begins a line below.
---@param offer dg_lsp.Offer
---@param pair dg_lsp.Pair
---@param count integer
---@return integer from bytes before it
---@return string closer
local function closer(offer, pair, count)
  local line = offer.text:sub(count + 1, pair.close):match("\n[^%S\n]*$") or ""
  local from = pair.close - #line
  return from, offer.text:sub(from + 1, pair.stop)
end

--- The closers of pairs, innermost first, as one text.
---@param offer dg_lsp.Offer
---@param pairs dg_lsp.Pair[]
---@param count integer
---@return string
function M.closers(offer, pairs, count)
  return vim.iter(pairs):fold("", function(found, pair)
    return found .. select(2, closer(offer, pair, count))
  end)
end

--- The pairs that are open after `count` bytes of an offer's text, innermost first.
---@param offer dg_lsp.Offer
---@param count integer
---@param wanted? fun(pair: dg_lsp.Pair): boolean?
---@return dg_lsp.Pair[]
function M.open(offer, count, wanted)
  local open = vim.tbl_filter(function(pair)
    return pair.open < count and count <= pair.close and (not wanted or wanted(pair))
  end, offer.pairs)
  return vim.iter(open):rev():totable()
end

--- The text typed at the place of an offer since it was made; nil when anything else has changed but closers after the
--- cursor, which an accepted part has put there, or the editor by itself.
---@param offer dg_lsp.Offer
---@return string?
---@return dg_lsp.Pair[]? closed the pairs that are closed there
function M.typed(offer)
  if api.nvim_get_current_buf() ~= offer.buf then
    return nil
  end
  local row, col = unpack(api.nvim_win_get_cursor(0))
  row = row - 1
  local more = api.nvim_buf_line_count(offer.buf) - offer.count - (row - offer.row) -- lines of closers
  if row < offer.row or more < 0 then
    return nil
  end
  local lines = api.nvim_buf_get_lines(offer.buf, offer.row, row + 1, false)
  if lines[1]:sub(1, offer.col) ~= offer.before then
    return nil
  end
  lines[#lines] = lines[#lines]:sub(1, col)
  if #lines[1] < offer.col then
    return nil
  end
  lines[1] = lines[1]:sub(offer.col + 1)
  local typed = table.concat(lines, "\n")
  local after = api.nvim_buf_get_lines(offer.buf, row, row + 1 + more, false)
  after[1] = (after[1] or ""):sub(col + 1)
  local follows, own =
    table.concat(after, "\n"), M.open(offer, #typed, function(pair)
      return offer.closed[pair]
    end)
  for _, closed in ipairs({ own, M.open(offer, #typed), {} }) do
    if follows == M.closers(offer, closed, #typed) .. offer.after then
      return typed, closed
    end
  end
end

--- The rest of an offer at the cursor, after the text typed since; nil when the buffer no longer agrees with it, or has
--- all of it. Example: an offer of `None` after `total = ` leaves `ne` once `No` is typed, and nothing once `x` is.
---@param offer dg_lsp.Offer
---@return string?
function M.rest(offer)
  local typed, closed = M.typed(offer)
  if not typed or #typed >= #offer.text or offer.text:sub(1, #typed) ~= typed then
    return nil
  end
  local rest = offer.text:sub(#typed + 1)
  return rest ~= M.closers(offer, closed or {}, #typed) and rest or nil
end

--- A stretch of ghost text: its place in the buffer, counted from 0 and in bytes, and its text.
---@class dg_lsp.Stretch
---@field row integer
---@field col integer
---@field text string

--- The rest of an offer as it is drawn: in front of the closers that are in the buffer, between them, and after them.
---@param offer dg_lsp.Offer one that has a rest
---@return dg_lsp.Stretch[]
function M.stretches(offer)
  local row, col = unpack(api.nvim_win_get_cursor(0))
  local typed, closed = M.typed(offer)
  local at, count = #assert(typed), #assert(typed)
  local found = { { row = row - 1, col = col } }
  for _, pair in ipairs(closed or {}) do
    local from, text = closer(offer, pair, count)
    local last = found[#found]
    last.text = offer.text:sub(at + 1, from)
    local lines = vim.split(text, "\n", { plain = true })
    at = pair.stop
    table.insert(found, {
      row = last.row + #lines - 1,
      col = (#lines == 1 and last.col or 0) + #lines[#lines],
    })
  end
  found[#found].text = offer.text:sub(at + 1)
  return vim.tbl_filter(function(stretch)
    return stretch.text ~= ""
  end, found)
end

--- The whole text.
---@param text string
---@return string
function M.whole(text)
  return text
end

--- The first word, with the blanks and line ends before it. Example: `foo` of `foo(bar)`, ` + b` becomes ` +`.
---@param text string
---@return string
function M.word(text)
  return vim.fn.matchstr(text, [=[^\_s*\%(\k\+\|\%(\k\@![^[:space:]]\)\+\|$\)]=])
end

--- The first line that is not empty, without its line end.
---@param text string
---@return string
function M.line(text)
  local stop = text:find("\n", 2, true)
  return stop and text:sub(1, stop - 1) or text
end

--- How many lines above the cursor the empty block is that the text before it ends with, 0 where there is none.
--- The block is a line of white space, with lines below it that only close brackets.
---@return integer
function M.inside()
  local row, col = unpack(api.nvim_win_get_cursor(0))
  local line, count = api.nvim_get_current_line():sub(1, col), 0
  while line and line:find("^%s*[%)%]}][%)%]};,]*%s*$") do
    count = count + 1
    line = api.nvim_buf_get_lines(0, row - 1 - count, row - count, false)[1]
  end
  return line and line:find("^%s+$") and count or 0
end

--- The byte of a column of a line in the encoding that was agreed, the line's end for one after it.
---@param line string
---@param column integer
---@param encoding string
---@return integer
function M.byte(line, column, encoding)
  if vim.fn.has("nvim-0.11") == 1 then
    return vim.str_byteindex(line, encoding, column, false)
  elseif encoding == "utf-8" then
    return math.min(column, #line)
  end
  local found, at = pcall(vim.str_byteindex, line, column, encoding == "utf-16")
  return found and at or #line
end

--- The lines of a stretch as they are drawn: tabs as blanks, the first one from its screen column on.
---@param stretch dg_lsp.Stretch
---@return string[]
function M.drawn(stretch)
  local before = api.nvim_buf_get_lines(0, stretch.row, stretch.row + 1, false)[1]:sub(1, stretch.col)
  local text, column, width = stretch.text, vim.fn.strdisplaywidth(before), vim.bo.tabstop
  local lines = vim.split(text, "\n", { plain = true })
  for number, line in ipairs(lines) do
    local at = number == 1 and column or 0
    lines[number] = line:gsub("[^\t]*\t", function(piece)
      local head = piece:sub(1, -2)
      at = at + vim.fn.strdisplaywidth(head, at)
      local blanks = width - at % width
      at = at + blanks
      return head .. (" "):rep(blanks)
    end)
  end
  return lines
end

return M
