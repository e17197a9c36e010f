--- The language server as Neovim's client sees it: how it is found, started, restarted, and spoken to.

local options = require("dg_lsp.options")
local say = require("dg_lsp.say")
local status = require("dg_lsp.status")

local M = { name = "dg_lsp" }
local markers = {
  {
    "pyproject.toml",
    "package.json",
    "tsconfig.json",
    "Cargo.toml",
    "go.mod",
    "pom.xml",
    "build.gradle",
    "CMakeLists.txt",
  },
  ".git",
}
local said = {} -- messages that are given once
local stopping = false -- the server is meant to end

--- The folder of this plug-in.
---@return string
local function folder()
  local here = vim.api.nvim_get_runtime_file("lua/dg_lsp/server.lua", false)[1] or ""
  return vim.fs.normalize(vim.fs.dirname(here) .. "/../..")
end

--- The program that installed this plug-in, if it has left its path; else "".
---@return string
local function installer()
  local file = folder() .. "/server.txt"
  return vim.fn.filereadable(file) == 1 and vim.fn.readfile(file, "", 1)[1] or ""
end

--- The folder in which programs are started: none of its modules, settings or environments is a workspace's.
M.away = "/"

--- The path of a program in an absolute folder of the PATH; a relative one would be a workspace's. "" if there is none.
---@param name string
---@return string
local function on_path(name)
  for _, place in ipairs(vim.split(vim.env.PATH or "", ":", { plain = true })) do
    local program = place .. "/" .. name
    if vim.startswith(place, "/") and vim.fn.executable(program) == 1 then
      return program
    end
  end
  return ""
end

--- The command line of the server: the user's `cmd`, else the program that installed this plug-in, else dg-lsp from the
--- PATH or from where pipx and uv put it.
---@return string[]
function M.command()
  local own = options.get(0).cmd
  if #own > 0 then
    local program = own[1]:find("/") and own[1] or on_path(own[1])
    return program == "" and own or vim.list_extend({ program }, own, 2)
  end
  local places = { installer(), on_path("dg-lsp"), vim.fn.expand("~/.local/bin/dg-lsp") }
  for _, place in ipairs(places) do
    if vim.startswith(place, "/") and vim.fn.executable(place) == 1 then
      return { place, "--stdio" }
    end
  end
  return { "dg-lsp", "--stdio" }
end

--- Return whether the program of a command line can be started: one that is not found has no path.
---@param program string
---@return boolean
function M.runs(program)
  return program:find("/") ~= nil and vim.fn.executable(program) == 1
end

--- The command that installs the server: from the clone that this plug-in is in, if it is, else from a wheel.
---@return string
function M.install_command()
  local clone = vim.fs.normalize(folder() .. "/../..")
  local is_clone = vim.fn.filereadable(clone .. "/dg_lsp/__main__.py") == 1
  -- Of the two only uv finds the build of torch that fits the machine.
  local tool = vim.fn.executable("uv") == 1 and "uv tool install --torch-backend auto " or "pipx install "
  return tool .. (is_clone and vim.fn.shellescape(clone) or "dg_lsp-*.whl")
end

--- Return whether the server can be started; if not, show once how to install it.
---@return boolean
local function present()
  local program = M.command()[1]
  if M.runs(program) then
    return true
  end
  local why = ("%s is not on the PATH; run: %s"):format(program, M.install_command())
  if status.get().state ~= "missing" then
    status.set({ state = "missing", why = why })
  end
  if not said.missing then
    said.missing = true
    vim.schedule(function()
      say(why, vim.log.levels.WARN)
    end)
  end
  return false
end

--- Tell the user that the server died, unless it was meant to end.
---@param code integer
---@param signal integer
local function ended(code, signal)
  if stopping or (code == 0 and signal == 0) or vim.v.exiting ~= vim.NIL then
    return
  end
  local how = signal ~= 0 and "signal " .. signal or "exit code " .. code
  local why = ("the server has ended (%s); :DgLsp restart starts it again"):format(how)
  status.set({ state = "ended", why = why })
  say(why, vim.log.levels.WARN)
end

--- Start a program of ours; no folder of a workspace is its own. No other function of this plug-in starts one, except
--- `start` below.
---@param words string[]
---@param on_exit? fun(done: vim.SystemCompleted)
---@return vim.SystemObj
function M.run(words, on_exit)
  return vim.system(words, { text = true, cwd = M.away }, on_exit)
end

--- Start the server. Its end is reported here, so Neovim's own message about it is left out.
---@param dispatchers table
---@return table
local function start(dispatchers)
  local on_exit = dispatchers.on_exit
  dispatchers.on_exit = function(code, signal)
    vim.schedule(function()
      ended(code, signal)
    end)
    on_exit(0, 0)
  end
  return vim.lsp.rpc.start(M.command(), dispatchers, { cwd = M.away })
end

--- Decide whether a buffer is served, and call `on_dir` with its project's folder if so.
---@param buf integer
---@param on_dir fun(root: string)
local function root_dir(buf, on_dir)
  if options.off(buf) ~= "" or not present() then
    return
  end
  if #vim.lsp.get_clients({ name = M.name }) == 0 then
    status.set({ state = "launching" })
  end
  if vim.fn.has("nvim-0.12") == 0 and not said.version then
    said.version = true
    say(("made for Neovim 0.12; in %s :checkhealth dg_lsp says what works"):format(tostring(vim.version())))
  end
  require("dg_lsp.keys").define(buf)
  local name = vim.api.nvim_buf_get_name(buf)
  local root = vim
    .iter(markers)
    :map(function(marker)
      return vim.fs.root(buf, marker)
    end)
    :next()
  on_dir(root or (name ~= "" and vim.fs.dirname(name)) or vim.uv.cwd())
end

--- The client's capabilities besides those that Neovim reports of itself; Neovim 0.10 would take this for all.
---@return table
local function capabilities()
  local own = {
    general = { positionEncodings = { "utf-8", "utf-16" } },
    workspace = { configuration = true },
    experimental = {
      dgLsp = { status = true, drafts = true, confirm = true, apart = true, grows = true, inside = true, pairs = true },
    },
  }
  if vim.fn.has("nvim-0.11") == 1 then
    return own
  end
  return vim.tbl_deep_extend("force", vim.lsp.protocol.make_client_capabilities(), own)
end

--- The configuration of Neovim's client, as lsp/dg_lsp.lua returns it.
---@return table
function M.config()
  return {
    name = M.name,
    cmd = start,
    filetypes = options.filetypes,
    get_language_id = function(_, filetype)
      return filetype == "cs" and "csharp" or filetype -- Vim's name and the protocol's
    end,
    root_dir = root_dir,
    capabilities = capabilities(),
    -- Code actions come as this command, whose result may have to be shown before it is applied.
    commands = {
      ["dg-lsp.fill"] = function(command)
        require("dg_lsp.fill").target(command.arguments[1])
      end,
    },
    before_init = function(params)
      -- Here, because the server lets no workspace choose what runs on the machine, and `on_init` answers for one.
      local settings = options.get(0).settings
      params.initializationOptions = next(settings) and settings or vim.empty_dict()
    end,
    on_init = function(client)
      client.settings = M.settings(client)
      -- Neovim's own inline completion would draw a second ghost text, and put it in the wrong place.
      client.server_capabilities.inlineCompletionProvider = nil
      status.set({ state = "idle" })
    end,
    handlers = {
      ["window/showMessage"] = function(_, result)
        local levels = { vim.log.levels.ERROR, vim.log.levels.WARN }
        say((result.message:gsub("^dg%-lsp: ", "")), levels[result.type])
      end,
      ["workspace/applyEdit"] = function(...)
        -- A fill is an undo step of its own, in Insert mode too; setting this option ends the step before it.
        vim.bo.undolevels = vim.bo.undolevels
        require("dg_lsp.fill").applied()
        return vim.lsp.handlers["workspace/applyEdit"](...)
      end,
      ["workspace/configuration"] = function(err, result, context)
        local answers = vim.lsp.handlers["workspace/configuration"](err, result, context)
        for at, item in ipairs(result.items) do
          -- The user's own settings, apart from those of vim.lsp.config, in which a project's may be.
          if item.section == "dg-lsp-user" then
            local own = options.get(0).settings
            answers[at] = next(own) and own or vim.empty_dict()
          end
        end
        return answers
      end,
      ["dg-lsp/status"] = function(_, result)
        status.set(result)
      end,
      ["dg-lsp/grown"] = function(_, result)
        require("dg_lsp.suggestion").grown(result.uri)
      end,
      ["dg-lsp/draft"] = function(_, result, context)
        require("dg_lsp.fill").draft(result, context)
      end,
    },
  }
end

--- The client that serves a buffer, once it is initialised.
---@param buf integer
---@return vim.lsp.Client?
function M.client(buf)
  return vim.lsp.get_clients({ name = M.name, bufnr = buf })[1]
end

--- Call a method of a client, which Neovim 0.10 wants without the client as its first argument.
local function call(client, method, ...)
  if vim.fn.has("nvim-0.11") == 1 then
    return client[method](client, ...)
  end
  return client[method](...)
end

--- Send a request. `handler` is called with the error and the result.
---@return boolean sent
---@return integer? id
function M.request(client, method, params, handler, buf)
  return call(client, "request", method, params, handler, buf)
end

--- Send a notification.
function M.notify(client, method, params)
  return call(client, "notify", method, params)
end

--- Cancel a request.
function M.cancel(client, id)
  return call(client, "cancel_request", id)
end

--- Have a buffer served, if it is on.
---@param buf integer
function M.attach(buf)
  local config = vim.deepcopy(vim.lsp.config and vim.lsp.config[M.name] or M.config())
  config.root_dir(buf, function(root)
    config.root_dir = root
    vim.lsp.start(config, { bufnr = buf })
  end)
end

--- Attach the buffers that are on, and take those that are off from the server, which then forgets their text.
function M.refresh()
  for _, buf in ipairs(vim.api.nvim_list_bufs()) do
    if vim.api.nvim_buf_is_loaded(buf) then
      local client, on = M.client(buf), options.off(buf) == ""
      if client and not on then
        vim.lsp.buf_detach_client(buf, client.id)
      elseif on and not client then
        M.attach(buf)
      end
    end
  end
end

--- Start the server again, after stopping it if it runs. The engine runs on.
function M.restart()
  said.missing = nil
  local clients = vim.lsp.get_clients({ name = M.name })
  stopping = true
  for _, client in ipairs(clients) do
    -- Before 0.12 there is no patience in milliseconds: a number would kill the server at once.
    call(client, "stop", vim.fn.has("nvim-0.12") == 1 and 1000 or nil)
  end
  local function again(left)
    if left > 0 and #vim.lsp.get_clients({ name = M.name }) > 0 then
      vim.defer_fn(function()
        again(left - 1)
      end, 50)
    else
      stopping = false
      M.refresh()
    end
  end
  again(100)
end

--- The answer of a client to the server's `workspace/configuration`: the user's settings over those of vim.lsp.config.
---@param client vim.lsp.Client
---@return table
function M.settings(client)
  local configured = client.config.settings or {}
  local merged = vim.tbl_extend("force", configured["dg-lsp"] or {}, options.get(0).settings)
  return vim.tbl_extend("force", configured, { ["dg-lsp"] = next(merged) and merged or vim.empty_dict() })
end

--- Change a setting of the running server, and of those started later.
---@param name string
---@param value any
function M.setting(name, value)
  options.set("g", { settings = { [name] = value } })
  for _, client in ipairs(vim.lsp.get_clients({ name = M.name })) do
    client.settings = M.settings(client)
    M.notify(client, "workspace/didChangeConfiguration", { settings = client.settings })
  end
end

return M
