--- The state of the server and its engine, as `dg-lsp/status` reports it, and as text for a statusline.

local M = {}

--- Besides the server's states: "none" (not started), "launching", "missing" (not installed), "ended" (it died).
---@class dg_lsp.Status
---@field state string
---@field why? string
---@field done? number
---@field growing? boolean whether more is coming below the ghost text that is shown
---@field last? { uri: string, offered: boolean, why: string, milliseconds: number, note: string? }

---@type dg_lsp.Status
local latest = { state = "none", why = "the server has not been started" }
local message = "" -- the last one that was shown
local fetched ---@type { what: string, how: string? }? the model that is being fetched, and how far that is

--- The newest status.
---@return dg_lsp.Status
function M.get()
  return latest
end

--- Keep a status, and let statuslines and the autocommand `User DgLspStatus` know.
---@param status dg_lsp.Status
function M.set(status)
  latest = status
  vim.schedule(function()
    vim.api.nvim_exec_autocmds("User", { pattern = "DgLspStatus", modeline = false })
    vim.cmd.redrawstatus()
  end)
end

--- Keep a message that was shown, for `:DgLsp status`.
---@param text string
function M.said(text)
  message = text
end

--- Keep how far the fetch of a model is; nil once it has ended.
---@param what? string such as "coder 12 %"
---@param how? string
function M.fetched(what, how)
  fetched = what and { what = what, how = how } or nil
  vim.schedule(vim.cmd.redrawstatus)
end

--- The progress before the first ghost text, such as "loading 40 %"; "" when nothing is being started.
---@return string
function M.waiting()
  if latest.state == "loading" then
    return ("loading %.0f %%"):format((latest.done or 0) * 100)
  end
  return (latest.state == "launching" or latest.state == "starting") and "starting" or ""
end

--- The text for a statusline: "" in buffers that dg-lsp does not serve, else such as "dg-lsp: ready".
---@return string
function M.text()
  local off = require("dg_lsp.options").off(vim.api.nvim_get_current_buf())
  local known = vim.tbl_contains(require("dg_lsp.options").filetypes, vim.bo.filetype)
  if not known or vim.bo.buftype ~= "" then
    return ""
  elseif fetched then
    return "dg-lsp: fetching " .. fetched.what
  elseif off ~= "" then
    return "dg-lsp: off"
  end
  local waiting = M.waiting()
  return "dg-lsp: " .. (waiting ~= "" and waiting or latest.state) .. (latest.growing and ", more is coming" or "")
end

--- The lines of `:DgLsp status`, from the server's answer for the current buffer.
---@param answer dg_lsp.Status
---@param off string why dg-lsp is off in the buffer, or ""
---@return string[]
function M.report(answer, off)
  local lines = { "Server: " .. (answer.version and "dg-lsp " .. answer.version or answer.state) }
  local state = answer.state
  if answer.why and answer.why ~= "" then
    state = state .. ": " .. answer.why
  end
  table.insert(lines, "State: " .. state)
  if answer.checkpoint and answer.checkpoint ~= "" then
    local device = answer.device and answer.device ~= "" and " on " .. answer.device or ""
    table.insert(lines, "Model: " .. answer.checkpoint .. device)
  end
  if type(answer.choice) == "string" and answer.choice ~= "" then
    table.insert(lines, "Ghost text: " .. answer.choice)
  end
  if (answer.milliseconds or 0) > 0 then
    local steps = (answer.steps or 0) > 0 and (", steps: %d"):format(answer.steps) or ""
    table.insert(lines, ("Last fill: %.0f ms%s"):format(answer.milliseconds, steps))
  end
  table.insert(lines, "This buffer: " .. (off == "" and "on" or "off: " .. off))
  local last = answer.last or latest.last
  if type(last) == "table" then
    local note = (last.note or "") ~= "" and "; " .. last.note or ""
    local offered = last.offered and ("offered after %.0f ms%s"):format(last.milliseconds or 0, note)
    table.insert(lines, "Last request: " .. (offered or "nothing offered: " .. (last.why or "")))
  end
  if type(answer.use) == "string" and answer.use ~= "" then
    table.insert(lines, "Ghost text of this model: " .. answer.use)
  end
  if fetched then
    table.insert(lines, ("Fetching %s: %s"):format(fetched.what, fetched.how or "it begins"))
  end
  if message ~= "" then
    table.insert(lines, "Last message: " .. message)
  end
  return lines
end

--- Show the status of the current buffer in a window that closes with the next move of the cursor.
function M.show()
  local server = require("dg_lsp.server")
  local buf = vim.api.nvim_get_current_buf()
  local off = require("dg_lsp.options").off(buf)
  local function open(answer)
    local lines = M.report(answer, off)
    vim.lsp.util.open_floating_preview(lines, "", { border = "rounded", focus_id = "dg_lsp.status", wrap = true })
  end
  local client = server.client(buf)
  if not client then
    return open(latest)
  end
  local params = { uri = vim.uri_from_bufnr(buf) }
  server.request(client, "dg-lsp/status", params, function(err, answer)
    open(answer or { state = "failed", why = err and err.message or "the server gave no answer" })
  end, buf)
end

return M
