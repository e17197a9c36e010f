--- Fills that the user asks for: sent, drawn while they settle, cancelled, and reported.

local confirm = require("dg_lsp.confirm")
local options = require("dg_lsp.options")
local say = require("dg_lsp.say")
local server = require("dg_lsp.server")
local status = require("dg_lsp.status")
local text = require("dg_lsp.text")

local M = {}
local api = vim.api
local space = api.nvim_create_namespace("dg_lsp.fill")
local note_space = api.nvim_create_namespace("dg_lsp.fill.note")
local SURE = 0.5 -- the entropy, in nats, below which a slot is drawn as final
local FILLING = { ["workspace/executeCommand"] = true, ["codeAction/resolve"] = true }

--- The kinds of gap that can be asked for by name.
M.kinds = {
  "function_body",
  "class_body",
  "block",
  "arguments",
  "parameters",
  "collection",
  "expression",
  "statement",
  "string",
  "docstring",
  "comment",
  "rest_of_line",
  "holes",
}

local running ---@type { client: vim.lsp.Client, id: integer, buf: integer, key: table? }?
local drafts = {} ---@type table<integer, integer> request -> the buffer in which its draft is drawn

--- Say at the end of a line of the buffer what the fill is doing; the line is the cursor's when it begins.
---@param buf integer
---@param message string
local function note(buf, message)
  local marks = api.nvim_buf_get_extmarks(buf, note_space, 0, -1, {})
  local row = marks[1] and marks[1][2] or api.nvim_win_get_cursor(0)[1] - 1
  local waiting = status.waiting()
  message = waiting ~= "" and waiting or message
  local chunk = { ("  dg-lsp: %s, <C-c> cancels"):format(message), "DgLspHint" }
  api.nvim_buf_set_extmark(buf, note_space, row, 0, { id = 1, virt_text = { chunk }, virt_text_pos = "eol" })
end

--- Take away what is drawn for a request.
---@param request integer
local function erase(request)
  local buf = drafts[request]
  drafts[request] = nil
  if buf and api.nvim_buf_is_valid(buf) then
    api.nvim_buf_clear_namespace(buf, space, 0, -1)
  end
end

--- The fill that runs has ended: give <C-c> back and take what is drawn away.
local function finish()
  local done = running
  running = nil
  if not done then
    return
  end
  erase(done.id)
  if not api.nvim_buf_is_loaded(done.buf) then
    return
  end
  api.nvim_buf_clear_namespace(done.buf, note_space, 0, -1)
  api.nvim_buf_call(done.buf, function()
    pcall(vim.keymap.del, "n", "<C-c>", { buffer = done.buf })
    if done.key then
      vim.fn.mapset("n", false, done.key)
    end
  end)
end

--- An edit is about to be applied: the fill that runs is over, whose answer comes later, and the next one may begin.
--- Remove all drafts, which would be shown beside the edit for a moment.
function M.applied()
  for request in pairs(drafts) do
    erase(request)
  end
  finish()
end

--- Send one of the server's commands, and let <C-c> cancel it. `report` is called with its result.
---@param command string
---@param argument table
---@param report fun(result: table)
local function send(command, argument, report)
  local buf = api.nvim_get_current_buf()
  local client, off = server.client(buf), options.off(buf)
  if not client then
    return say(off ~= "" and off or "the server does not run here; :DgLsp status says why")
  elseif running then
    return say("a fill runs already; :DgLsp cancel ends it")
  end
  argument.uri = vim.uri_from_bufnr(buf)
  local params = { command = command, arguments = { argument } }
  local mine = { client = client, buf = buf }
  local sent, id = server.request(client, "workspace/executeCommand", params, function(err, result)
    if running == mine then
      finish()
    end
    if mine.closed then
      return
    elseif err then
      say(err.message or "the server gave no answer")
    elseif result then
      report(result)
    end
  end, buf)
  if not sent then
    return say("the server is about to end; nothing was asked of it")
  end
  -- After the request, since it sends the buffer's last changes.
  mine.id = id
  local key = vim.fn.maparg("<C-c>", "n", false, true)
  mine.key = key.buffer == 1 and key or nil
  running = mine
  vim.keymap.set("n", "<C-c>", M.cancel, { buffer = buf, nowait = true, desc = "dg-lsp cancel" })
  note(buf, "filling")
end

--- Fill what a target names, as the argument of a code action's command does. A change that takes written code away,
--- that nothing at the cursor asks for, or that is most likely wrong, is shown first.
---@param target table
function M.target(target)
  local buf, client, tick = api.nvim_get_current_buf(), server.client(0), vim.b.changedtick
  send("dg-lsp.fill", target, function(result)
    if (result.confirm or "") ~= "" and type(result.edit) == "table" and not result.applied then
      confirm.ask(buf, client, result.edit, result.confirm, tick)
    elseif not result.applied then
      say("nothing filled: " .. (result.why or ""))
    elseif result.why and result.why ~= "" then
      say(result.why)
    end
  end)
end

--- Fill at the cursor: what the place asks for, or a gap of the given kind.
---@param kind? string
function M.run(kind)
  local client = server.client(0)
  local encoding = client and client.offset_encoding or "utf-16"
  M.target({ position = vim.lsp.util.make_position_params(0, encoding).position, kind = kind })
end

--- Fill every unwritten function of the buffer.
function M.run_all()
  send("dg-lsp.fillAll", {}, function(result)
    local left = vim.tbl_map(function(pair)
      return pair[1] .. ": " .. pair[2]
    end, result.left or {})
    local count = #(result.filled or {})
    local message = ("%d function%s filled"):format(count, count == 1 and "" or "s")
    say(message .. (#left > 0 and "; left: " .. table.concat(left, "; ") or ""))
  end)
end

--- Cancel the fill that runs, or else the fetch of a model.
function M.cancel()
  local mine = running
  if not mine then
    return require("dg_lsp.model").cancel() or say("no fill runs")
  end
  finish()
  server.cancel(mine.client, mine.id)
  say("cancelled")
end

--- The highlight group of a run of a draft.
local function group_of(anchored, accepted, entropy)
  if anchored then
    return "DgLspAnchor"
  end
  return (accepted or entropy < SURE) and "DgLspAccepted" or "DgLspUncertain"
end

--- The runs of a draft as lines of chunks, tabs as blanks.
---@param runs table[]
---@param width integer
---@return table[][]
local function lines_of(runs, width)
  local lines = { {} }
  for _, run in ipairs(runs) do
    local piece, group = run[1]:gsub("\r", ""):gsub("\t", (" "):rep(width)), group_of(run[2], run[3], run[4])
    for number, part in ipairs(vim.split(piece, "\n", { plain = true })) do
      if number > 1 then
        table.insert(lines, {})
      end
      table.insert(lines[#lines], { part, group })
    end
  end
  return lines
end

--- Draw a draft at its final position: in a line of its own below the text that it replaces, or within the line.
---@param buf integer
---@param range lsp.Range
---@param runs table[]
---@param encoding string
local function draw(buf, range, runs, encoding)
  local function place(position)
    local line = api.nvim_buf_get_lines(buf, position.line, position.line + 1, false)[1] or ""
    return position.line, text.byte(line, position.character, encoding), line
  end
  local row, col, line = place(range.start)
  local last, stop = place(range["end"])
  local lines = lines_of(runs, vim.bo[buf].tabstop)
  api.nvim_buf_clear_namespace(buf, space, 0, -1)
  local replaced = { end_row = last, end_col = stop, hl_group = "DgLspReplaced" }
  api.nvim_buf_set_extmark(buf, space, row, col, replaced)
  local head = line:sub(1, col)
  if head:match("^%s*$") then
    local indent = head:gsub("\t", (" "):rep(vim.bo[buf].tabstop))
    -- Some models write the first line's indent themselves.
    if not vim.startswith(lines[1][1] and lines[1][1][1] or "", indent) then
      table.insert(lines[1], 1, { indent, "DgLspAnchor" })
    end
    api.nvim_buf_set_extmark(buf, space, last, 0, { virt_lines = lines })
  else
    local below = vim.list_slice(lines, 2)
    api.nvim_buf_set_extmark(buf, space, last, stop, {
      virt_text = lines[1],
      virt_text_pos = "inline",
      virt_lines = #below > 0 and below or nil,
    })
  end
end

--- Draw a `dg-lsp/draft` if it belongs to a fill that still runs and to the buffer as it is. Those of ghost text are
--- not drawn: they would flicker at each key.
---@param draft table
---@param context table
function M.draft(draft, context)
  local client = vim.lsp.get_client_by_id(context.client_id)
  local buf = vim.uri_to_bufnr(draft.uri)
  local request = client and client.requests[draft.requestId]
  local current = draft.version == vim.lsp.util.buf_versions[buf] and api.nvim_buf_is_loaded(buf)
  if not (request and request.type == "pending" and FILLING[request.method]) or not current then
    return
  end
  if options.get(buf).drafts then
    drafts[draft.requestId] = buf
    draw(buf, draft.range, draft.runs, client.offset_encoding)
  end
end

--- Begin to watch requests, which take their drafts with them, and the progress of the server. Called once.
function M.watch()
  local group = api.nvim_create_augroup("dg_lsp.fill", {})
  api.nvim_create_autocmd("LspRequest", {
    group = group,
    callback = function(event)
      if event.data.request.type ~= "pending" then
        erase(event.data.request_id)
      end
    end,
  })
  api.nvim_create_autocmd("LspProgress", {
    group = group,
    callback = function(event)
      local value = event.data.params and event.data.params.value
      if running and event.data.client_id == running.client.id and type(value) == "table" and value.message then
        note(running.buf, value.message)
      end
    end,
  })
  api.nvim_create_autocmd("User", {
    group = group,
    pattern = "DgLspStatus",
    callback = function()
      if running and api.nvim_buf_is_valid(running.buf) then
        note(running.buf, "filling")
      end
    end,
  })
  api.nvim_create_autocmd("LspDetach", {
    group = group,
    callback = function(event)
      local ended = running
      if not ended or ended.buf ~= event.buf or ended.client.id ~= event.data.client_id then
        return
      end
      -- Later, when it can be seen whether the file is being closed.
      vim.schedule(function()
        if running ~= ended then
          return
        end
        finish()
        ended.closed = not api.nvim_buf_is_loaded(ended.buf)
        if not ended.closed and status.get().state ~= "ended" then -- which is said already
          say("the server was stopped, so nothing was filled")
        end
      end)
    end,
  })
end

return M
