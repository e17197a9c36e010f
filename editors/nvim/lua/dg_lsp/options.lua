--- The user's options: `vim.g.dg_lsp` for all buffers, `vim.b.dg_lsp` for one; each a table, or false for "off".

local M = {}

--- The filetypes that dg-lsp knows.
M.filetypes = {
  "astro",
  "bash",
  "c",
  "cpp",
  "cs",
  "css",
  "dockerfile",
  "go",
  "hcl",
  "html",
  "java",
  "javascript",
  "javascriptreact",
  "json",
  "jsonc",
  "kotlin",
  "lua",
  "markdown",
  "mysql",
  "opentofu",
  "pgsql",
  "php",
  "plsql",
  "python",
  "ruby",
  "rust",
  "scala",
  "sh",
  "shellscript",
  "sql",
  "svelte",
  "swift",
  "terraform",
  "toml",
  "typescript",
  "typescriptreact",
  "vue",
  "yaml",
  "zsh",
}

M.defaults = {
  enabled = true, -- off: the server does not even see the buffer
  automatic = true, -- off: ghost text only by <Plug>(dg-lsp-next)
  debounce = 50, -- milliseconds without a key before ghost text is asked for
  cmd = {}, -- the server's command line; empty: dg-lsp is looked for
  filetypes = {}, -- { python = false } switches a filetype off
  settings = {}, -- the server's settings, see docs/configuration.md
  drafts = true, -- show a fill while it is being made
  keys = {
    accept = "<Tab>",
    accept_word = "<C-Right>",
    accept_line = "<C-Down>",
    next = "<M-]>",
    previous = "<M-[>",
    dismiss = "<C-]>",
  },
}

---@param value any
---@return table
local function table_of(value)
  if value == false then
    return { enabled = false }
  end
  return type(value) == "table" and value or {}
end

--- The options that hold in a buffer.
---@param buf integer
---@return table
function M.get(buf)
  local own = table_of(vim.b[buf].dg_lsp)
  return vim.tbl_deep_extend("force", M.defaults, table_of(vim.g.dg_lsp), own)
end

--- Change options for all buffers (`scope` "g") or for the current one ("b").
---@param scope "g"|"b"
---@param changes table
function M.set(scope, changes)
  local kept = vim.deepcopy(table_of(vim[scope].dg_lsp))
  vim[scope].dg_lsp = vim.tbl_deep_extend("force", kept, changes)
end

--- Switch dg-lsp on or off everywhere, whatever single buffers say.
---@param on boolean
function M.switch(on)
  M.set("g", { enabled = on })
  for _, buf in ipairs(vim.api.nvim_list_bufs()) do
    local own = table_of(vim.b[buf].dg_lsp)
    if own.enabled ~= nil then
      own.enabled = nil
      vim.b[buf].dg_lsp = next(own) and own or nil
    end
  end
end

--- The reason why dg-lsp is off in a buffer, as a sentence; "" where it is on.
---@param buf integer
---@return string
function M.off(buf)
  local filetype = vim.bo[buf].filetype
  if vim.bo[buf].buftype ~= "" then
    return "this buffer is no file"
  elseif not vim.tbl_contains(M.filetypes, filetype) then
    return filetype == "" and "the buffer has no filetype" or ("dg-lsp does not know the filetype " .. filetype)
  elseif M.get(buf).filetypes[filetype] == false then
    return ("%s is switched off; :DgLsp enable %s"):format(filetype, filetype)
  elseif M.get(buf).enabled then
    return ""
  elseif table_of(vim.b[buf].dg_lsp).enabled == false then
    return "switched off for this buffer; :DgLsp enable buffer"
  end
  return "switched off; :DgLsp enable"
end

--- The errors in vim.g.dg_lsp and the current buffer's vim.b.dg_lsp, one sentence each.
---@return string[]
function M.check()
  local wrong = {}
  for scope, value in pairs({ ["vim.g.dg_lsp"] = vim.g.dg_lsp, ["vim.b.dg_lsp"] = vim.b.dg_lsp }) do
    if value ~= nil and value ~= false and type(value) ~= "table" then
      table.insert(wrong, ("%s must be a table or false, not %s"):format(scope, vim.inspect(value)))
    end
    for name, given in pairs(table_of(value)) do
      local default = M.defaults[name]
      local no_keys = name == "keys" and given == false
      if default == nil then
        table.insert(wrong, ("%s.%s is unknown; known are %s"):format(scope, name, M.names()))
      elseif type(given) ~= type(default) and not no_keys then
        table.insert(wrong, ("%s.%s must be a %s, not a %s"):format(scope, name, type(default), type(given)))
      end
    end
  end
  return wrong
end

--- The names of all options, in one line.
---@return string
function M.names()
  local names = vim.tbl_keys(M.defaults)
  table.sort(names)
  return table.concat(names, ", ")
end

return M
