--- The command `:DgLsp` and its subcommands.

local options = require("dg_lsp.options")
local say = require("dg_lsp.say")
local server = require("dg_lsp.server")

local M = {}

--- Switch dg-lsp on or off: everywhere, for "buffer", or for a filetype.
---@param on boolean
---@param where? string
local function switch(on, where)
  if where == "buffer" then
    options.set("b", { enabled = on })
  elseif where then
    options.set("g", { filetypes = { [where] = on } })
  else
    options.switch(on)
  end
  server.refresh()
  local off = options.off(0)
  say("this buffer is " .. (off == "" and "on" or "off: " .. off))
end

local function log()
  local name = vim.lsp.log and vim.lsp.log.get_filename() or vim.lsp.get_log_path()
  vim.cmd.tabedit(vim.fn.fnameescape(name))
  vim.cmd.normal({ "G", bang = true })
end

--- Show how ghost text was used on this machine, as the server's program says.
local function stats()
  local command = {}
  for _, word in ipairs(server.command()) do
    if vim.startswith(word, "--") then
      break
    end
    table.insert(command, word)
  end
  table.insert(command, "stats")
  if not server.runs(command[1]) then
    return say(command[1] .. " is not on the PATH; run: " .. server.install_command())
  end
  local function open(done)
    local lines = vim.split(vim.trim(done.stdout .. done.stderr), "\n")
    vim.lsp.util.open_floating_preview(lines, "", { border = "rounded", focus_id = "dg_lsp.stats", wrap = false })
  end
  local started, why = pcall(server.run, command, vim.schedule_wrap(open))
  if not started then
    say(tostring(why))
  end
end

local places = vim.list_extend({ "buffer" }, options.filetypes)

--- Each subcommand: what runs with its argument, and the arguments that complete.
-- stylua: ignore
local subcommands = {
  status = { run = function() require("dg_lsp.status").show() end },
  fill = { run = function(kind) require("dg_lsp.fill").run(kind) end, values = require("dg_lsp.fill").kinds },
  holes = { run = function() require("dg_lsp.fill").run("holes") end },
  fill_all = { run = function() require("dg_lsp.fill").run_all() end },
  cancel = { run = function() require("dg_lsp.fill").cancel() end },
  model = { run = function() require("dg_lsp.model").show() end },
  stats = { run = stats },
  enable = { run = function(where) switch(true, where) end, values = places },
  disable = { run = function(where) switch(false, where) end, values = places },
  restart = { run = function() server.restart() end },
  log = { run = log },
  effort = {
    run = function(value) server.setting("effort", value or "normal") end,
    values = { "low", "normal", "high" },
  },
  health = { run = function() vim.cmd.checkhealth("dg_lsp") end },
}

---@param name? string
---@param argument? string
local function run(name, argument)
  local found = subcommands[name or "status"]
  local values = found and found.values
  if not found then
    say(("no subcommand %s; see :help :DgLsp"):format(name), vim.log.levels.ERROR)
  elseif argument and not vim.tbl_contains(values or {}, argument) then
    local known = values and "takes one of " .. table.concat(values, ", ") or "takes no argument"
    say(("%s %s"):format(name, known), vim.log.levels.ERROR)
  else
    found.run(argument)
  end
end

--- The words that may be completed at the cursor of a command line.
---@param lead string
---@param line string
---@return string[]
local function complete(lead, line)
  local words = vim.split(line:gsub("^.-DgLsp!?%s+", ""), "%s+")
  local found = #words == 1 and vim.tbl_keys(subcommands) or (subcommands[words[1]] or {}).values or {}
  local fitting = vim.tbl_filter(function(word)
    return #words <= 2 and vim.startswith(word, lead)
  end, found)
  table.sort(fitting)
  return fitting
end

--- Define `:DgLsp`.
function M.define()
  vim.api.nvim_create_user_command("DgLsp", function(given)
    run(given.fargs[1], given.fargs[2])
  end, { nargs = "*", complete = complete, desc = "dg-lsp: fill gaps in code" })
end

return M
