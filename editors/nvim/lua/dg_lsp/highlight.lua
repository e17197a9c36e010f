--- The highlight groups. A colour scheme or the user may define each of them.

local M = {}

local links = {
  DgLspHint = "NonText", -- "(2/3)" and "loading 40 %"
  DgLspAnchor = "Normal", -- in a draft: text that is given
  DgLspAccepted = "DgLspGhost", -- in a draft: text that is final
  DgLspUncertain = "DgLspFaint", -- in a draft: text that may still change
  DgLspReplaced = "DiffDelete", -- the text that a fill or a next edit is about to replace
  DgLspNext = "DiffAdd", -- the new text of a next edit, and where it is
}

--- `group` as it looks, with a colour for terminals without true colour, which the default colours leave out.
---@param group string
---@param ctermfg integer
---@return table
local function visible(group, ctermfg)
  local found = vim.api.nvim_get_hl(0, { name = group, link = false })
  found.ctermfg = found.ctermfg or ctermfg
  found.default = true
  return found
end

--- Define the groups; to be called again for each colour scheme, which clears them.
function M.define()
  local ghost = visible("Comment", 8)
  ghost.italic = true
  ghost.cterm = vim.tbl_extend("keep", ghost.cterm or {}, { italic = true })
  vim.api.nvim_set_hl(0, "DgLspGhost", ghost)
  vim.api.nvim_set_hl(0, "DgLspFaint", visible("NonText", 8))
  for name, link in pairs(links) do
    vim.api.nvim_set_hl(0, name, { link = link, default = true })
  end
end

return M
