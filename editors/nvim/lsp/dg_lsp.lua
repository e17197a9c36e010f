-- Read by vim.lsp.enable("dg_lsp"); vim.lsp.config("dg_lsp", {...}) changes it.
return require("dg_lsp.server").config()
