--- Places that the server cannot see by itself: the lines that were yanked last, and where a buffer was left.

local options = require("dg_lsp.options")
local server = require("dg_lsp.server")

local M = {}
local api = vim.api
-- Milliseconds until a yank is reported. Neovim sends changes up to 150 ms later, and one that comes after the report
-- would end it.
local PAUSE = 200
local timer ---@type uv.uv_timer_t?

--- Send a notification about a buffer, if it is served.
---@param buf integer
---@param method string
---@param params table
local function report(buf, method, params)
  local client = api.nvim_buf_is_loaded(buf) and server.client(buf)
  if client and options.off(buf) == "" then
    params.textDocument = { uri = vim.uri_from_bufnr(buf) }
    server.notify(client, method, params)
  end
end

--- Report the lines of a yank, unless the buffer is changed or something else is yanked soon.
---@param buf integer
local function yanked(buf)
  if vim.v.event.operator ~= "y" or vim.v.event.regname == "_" then
    return
  end
  local first, last = api.nvim_buf_get_mark(buf, "[")[1], api.nvim_buf_get_mark(buf, "]")[1]
  local tick = api.nvim_buf_get_changedtick(buf)
  timer = timer or assert(vim.uv.new_timer())
  timer:start(
    PAUSE,
    0,
    vim.schedule_wrap(function()
      if api.nvim_buf_is_loaded(buf) and api.nvim_buf_get_changedtick(buf) == tick then
        local range = { start = { line = first - 1, character = 0 }, ["end"] = { line = last, character = 0 } }
        report(buf, "dg-lsp/yanked", { range = range })
      end
    end)
  )
end

--- Begin to watch yanks and buffers. Called once, by plugin/dg_lsp.lua.
function M.watch()
  local group = api.nvim_create_augroup("dg_lsp.places", {})
  api.nvim_create_autocmd("TextYankPost", {
    group = group,
    callback = function(event)
      yanked(event.buf)
    end,
  })
  api.nvim_create_autocmd("BufLeave", {
    group = group,
    callback = function(event)
      report(event.buf, "dg-lsp/left", { position = { line = api.nvim_win_get_cursor(0)[1] - 1, character = 0 } })
    end,
  })
end

return M
