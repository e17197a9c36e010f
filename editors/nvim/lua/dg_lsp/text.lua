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
---@field inside? boolean whether the cursor belongs into the empty block that the text ends with
---@field shown? boolean whether the screen was drawn with it
---@field taken? boolean whether something of it was put into the buffer by a key

--- An offer of `text` at the cursor of the current window.
---@param text string
---@return dg_lsp.Offer
function M.offer(text)
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
  }
end

--- The text typed at the place of an offer since it was made; nil when anything else has changed.
---@param offer dg_lsp.Offer
---@return string?
function M.typed(offer)
  if api.nvim_get_current_buf() ~= offer.buf then
    return nil
  end
  local row, col = unpack(api.nvim_win_get_cursor(0))
  row = row - 1
  if row < offer.row or api.nvim_buf_line_count(offer.buf) ~= offer.count + row - offer.row then
    return nil
  end
  local lines = api.nvim_buf_get_lines(offer.buf, offer.row, row + 1, false)
  if lines[1]:sub(1, offer.col) ~= offer.before or lines[#lines]:sub(col + 1) ~= offer.after then
    return nil
  end
  lines[#lines] = lines[#lines]:sub(1, col)
  if #lines[1] < offer.col then
    return nil
  end
  lines[1] = lines[1]:sub(offer.col + 1)
  return table.concat(lines, "\n")
end

--- The rest of an offer at the cursor, after the text typed since; nil when the buffer no longer agrees with it.
--- Example: an offer of `None` after `total = ` leaves `ne` once `No` is typed, and nothing once `x` is.
---@param offer dg_lsp.Offer
---@return string?
function M.rest(offer)
  local typed = M.typed(offer)
  if not typed or #typed >= #offer.text or offer.text:sub(1, #typed) ~= typed then
    return nil
  end
  return offer.text:sub(#typed + 1)
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

--- The lines of a text as they are drawn: tabs as blanks, the first one from the cursor's screen column on.
---@param text string
---@return string[]
function M.drawn(text)
  local column, width = vim.fn.virtcol(".") - 1, vim.bo.tabstop
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
