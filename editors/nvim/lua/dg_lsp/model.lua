--- The model menu: the models of this machine, fetched and switched to without a restart of the server.

local say = require("dg_lsp.say")
local server = require("dg_lsp.server")
local status = require("dg_lsp.status")

local M = {}

---@class dg_lsp.Model
---@field name string
---@field bytes integer
---@field memoryBytes integer
---@field secondsPerLine? number
---@field can string[]
---@field state "in use"|"fetched"|"not fetched"|"too large"
---@field note? string

local fetching ---@type { client: vim.lsp.Client, id: integer?, name: string }?

--- The line of the menu for a model.
---@param model dg_lsp.Model
---@return string
function M.row(model)
  local facts = { model.state }
  if model.bytes > 0 then
    table.insert(facts, ("%.0f MB"):format(model.bytes / 1e6))
    table.insert(facts, ("%.1f GB of memory"):format(model.memoryBytes / 1e9))
  end
  if type(model.secondsPerLine) == "number" then
    table.insert(facts, ("%.1f s for a line here"):format(model.secondsPerLine))
  end
  local parts = { table.concat(facts, ", "), table.concat(model.can, ", ") }
  if type(model.note) == "string" then
    table.insert(parts, model.note)
  end
  return model.name .. ": " .. table.concat(parts, "; ")
end

--- Send one of the server's commands for a model. `done` is called if it succeeds.
---@return integer? id
local function send(client, command, name, done)
  local params = { command = command, arguments = { name } }
  local _, id = server.request(client, "workspace/executeCommand", params, function(err)
    if fetching and fetching.name == name then
      fetching = nil
      status.fetched(nil)
    end
    if err then
      return say(err.message or "the server gave no answer")
    end
    done()
  end)
  return id
end

local function use(client, name)
  send(client, "dg-lsp.useModel", name, function()
    say(name .. " is the model from now on")
  end)
end

---@param client vim.lsp.Client
---@param model dg_lsp.Model
local function take(client, model)
  if model.state == "in use" then
    return say(model.name .. " is in use already")
  elseif model.state ~= "not fetched" then
    return use(client, model.name)
  elseif fetching then
    return say(fetching.name .. " is being fetched; :DgLsp cancel ends that")
  end
  fetching = { client = client, name = model.name }
  status.fetched(model.name)
  fetching.id = send(client, "dg-lsp.fetchModel", model.name, function()
    use(client, model.name)
  end)
  say(("fetching %s; :DgLsp cancel ends that, and the next fetch continues"):format(model.name))
end

--- Show the menu.
function M.show()
  local client = server.client(0)
  if not client then
    return say("the server does not run here; :DgLsp status says why")
  end
  server.request(client, "dg-lsp/models", vim.empty_dict(), function(err, answer)
    if not answer then
      return say(err and err.message or "the server gave no answer")
    end
    local better = type(answer.better) == "string" and "; better on this machine: " .. answer.better or ""
    vim.ui.select(answer.models, { prompt = "dg-lsp: the model" .. better, format_item = M.row }, function(chosen)
      if chosen then
        take(client, chosen)
      end
    end)
  end)
end

--- Cancel the fetch.
---@return boolean cancelled
function M.cancel()
  if not (fetching and fetching.id) then
    return false
  end
  server.cancel(fetching.client, fetching.id)
  return true
end

--- Begin to watch the progress of a fetch, for the statusline. Called once, by plugin/dg_lsp.lua.
function M.watch()
  vim.api.nvim_create_autocmd("LspProgress", {
    group = vim.api.nvim_create_augroup("dg_lsp.model", {}),
    callback = function(event)
      local value = event.data.params and event.data.params.value
      if fetching and event.data.client_id == fetching.client.id and type(value) == "table" and value.message then
        local percent = value.percentage and (" %d %%"):format(value.percentage) or ""
        status.fetched(fetching.name .. percent, value.message)
      end
    end,
  })
end

return M
