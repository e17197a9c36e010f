--- `:checkhealth dg_lsp`: the chain from Neovim to the engine, link by link.

local options = require("dg_lsp.options")
local server = require("dg_lsp.server")

local M = {}
local PATIENCE = 5000 -- milliseconds for an answer of the server

local function check_neovim()
  local health, version = vim.health, tostring(vim.version())
  if vim.fn.has("nvim-0.12") == 1 then
    health.ok("Neovim " .. version)
  elseif vim.fn.has("nvim-0.11") == 1 then
    health.warn(("Neovim %s: nobody has tried dg-lsp with it; it is made for 0.12"):format(version))
  else
    health.warn(
      ("Neovim %s: ghost text, fills and :DgLsp work; vim.lsp.config does not. Made for 0.12"):format(version)
    )
  end
end

local function check_options()
  local wrong = options.check()
  for _, sentence in ipairs(wrong) do
    vim.health.warn(sentence)
  end
  if #wrong == 0 then
    vim.health.ok("vim.g.dg_lsp: " .. vim.inspect(vim.g.dg_lsp or {}, { newline = " ", indent = "" }))
  end
  local ghost = vim.api.nvim_get_hl(0, { name = "DgLspGhost", link = false })
  if not vim.o.termguicolors and not ghost.ctermfg then
    vim.health.warn("DgLspGhost has no ctermfg, so ghost text looks like other text in this terminal")
  end
end

local function check_program()
  local command = server.command()
  if not server.runs(command[1]) then
    return vim.health.error(command[1] .. " is not on the PATH", { "Run: " .. server.install_command() })
  end
  local own = options.get(0).cmd
  vim.health.ok(("command: %s, at %s"):format(table.concat(#own > 0 and own or command, " "), command[1]))
  local words = vim.list_slice(command, 1, #command)
  if words[#words] == "--stdio" then
    words[#words] = "--version"
    local answer = server.run(words):wait(PATIENCE * 2)
    if answer.code == 0 then
      vim.health.ok("version: " .. vim.trim(answer.stdout))
    else
      local why = vim.trim(answer.stderr or "")
      vim.health.error("it cannot be started: " .. (why ~= "" and why or "exit code " .. answer.code))
    end
  end
end

local function check_server()
  local client = vim.lsp.get_clients({ name = server.name })[1]
  if not client then
    local why = require("dg_lsp.status").get().why
    return vim.health.warn("the server does not run: " .. (why or "open a file that it knows"))
  end
  local began, answer = vim.uv.hrtime(), nil
  server.request(client, "dg-lsp/status", vim.empty_dict(), function(err, result)
    answer = { err = err, result = result }
  end, next(client.attached_buffers))
  vim.wait(PATIENCE, function()
    return answer ~= nil
  end, 10)
  if not (answer and answer.result) then
    return vim.health.error("the server gives no answer", { ":DgLsp restart", ":DgLsp log" })
  end
  local took = (vim.uv.hrtime() - began) / 1e6
  vim.health.ok(("the server answered in %.0f ms; encoding %s"):format(took, client.offset_encoding))
  for _, line in ipairs(require("dg_lsp.status").report(answer.result, "")) do
    if not line:match("^This buffer") then
      vim.health.info(line)
    end
  end
  vim.health.info("settings: " .. vim.inspect(options.get(0).settings, { newline = " ", indent = "" }))
end

local function check_buffers()
  for _, buf in ipairs(vim.api.nvim_list_bufs()) do
    if vim.api.nvim_buf_is_loaded(buf) and vim.bo[buf].buftype == "" and vim.bo[buf].filetype ~= "" then
      local name = vim.fn.fnamemodify(vim.api.nvim_buf_get_name(buf), ":~:.")
      local off = options.off(buf)
      local state = off ~= "" and "off: " .. off or (server.client(buf) and "on" or "on, but not attached")
      vim.health.info(("%s: %s"):format(name, state))
    end
  end
end

--- Called by Neovim.
function M.check()
  vim.health.start("dg-lsp: Neovim")
  check_neovim()
  vim.health.start("dg-lsp: options")
  check_options()
  vim.health.start("dg-lsp: program")
  check_program()
  vim.health.start("dg-lsp: server")
  check_server()
  vim.health.start("dg-lsp: buffers")
  check_buffers()
end

return M
