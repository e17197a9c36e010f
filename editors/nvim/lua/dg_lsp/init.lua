--- `setup()` for those who like it. Nothing needs it: vim.g.dg_lsp says the same.

local M = {}

--- Set options for all buffers; see |dg-lsp-options|.
---@param given? table
function M.setup(given)
  require("dg_lsp.options").set("g", given or {})
end

return M
