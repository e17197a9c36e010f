-- A language server inside Neovim, for tests of the plug-in alone. It finishes lines: of the texts in
-- _G.fake.targets it offers the rest of each that begins with the text before the cursor in its line. It is unkind
-- on purpose: it answers each request after _G.fake.delay() milliseconds, cancelled or not, from the text as it was
-- when it was asked.
_G.fake = {
  targets = {},
  pairs = {}, -- target -> its brackets and strings, each as { open, close, stop }
  delay = function()
    return 0
  end,
  offered = function() end, -- runs right after each answer with a text in it, before the screen is drawn
  texts = {}, -- uri -> text
  next = {}, -- next edits, each answered once
  asked = {}, -- the requests, as { method, params }
  told = {}, -- the notifications, as { method, params }
  models = {}, -- the entries of the model menu
  fetched = nil, -- ends the fetch of a model
}

local function pairs_after(target, count)
  local found = {}
  for _, pair in ipairs(_G.fake.pairs[target] or {}) do
    if pair[1] >= count then
      table.insert(found, { pair[1] - count, pair[2] - count, pair[3] - count })
    end
  end
  return found
end

local function items(params)
  local lines = vim.split(_G.fake.texts[params.textDocument.uri] or "", "\n", { plain = true })
  local before = (lines[params.position.line + 1] or ""):sub(1, params.position.character):gsub("^%s+", "")
  local found = {}
  for _, target in ipairs(_G.fake.targets) do
    if before ~= "" and #before < #target and vim.startswith(target, before) then
      local range = { start = params.position, ["end"] = params.position }
      local text = target:sub(#before + 1)
      table.insert(found, { insertText = text, range = range, pairs = pairs_after(target, #before) })
    end
  end
  return params.context.triggerKind == 1 and found or { found[1] }
end

local answers = {
  initialize = function()
    return {
      capabilities = {
        positionEncoding = "utf-8",
        textDocumentSync = { openClose = true, change = 1 },
        inlineCompletionProvider = true,
      },
    }
  end,
  ["textDocument/inlineCompletion"] = function(params)
    return { items = items(params) }
  end,
  ["dg-lsp/models"] = function()
    return { models = _G.fake.models, better = "coder" }
  end,
  ["dg-lsp/nextEdit"] = function()
    return { edit = table.remove(_G.fake.next, 1), reason = "no more" }
  end,
  ["dg-lsp/status"] = function()
    return { state = "ready", why = "", version = "0", last = { offered = false, why = "the moon is full" } }
  end,
}

local function told(method, params)
  table.insert(_G.fake.told, { method, params })
  if method == "textDocument/didOpen" then
    _G.fake.texts[params.textDocument.uri] = params.textDocument.text
  elseif method == "textDocument/didChange" then
    _G.fake.texts[params.textDocument.uri] = params.contentChanges[1].text
  end
end

vim.lsp.config("dg_lsp", {
  cmd = function(dispatchers)
    local closing, count = false, 0
    return {
      request = function(method, params, callback, replied)
        count = count + 1
        local id, answer = count, answers[method] and answers[method](params)
        if method ~= "dg-lsp/nextEdit" then
          table.insert(_G.fake.asked, { method, params })
        end
        local function reply()
          if replied then
            replied(id)
          end
          callback(nil, answer, id)
          if answer and answer.items and #answer.items > 0 then
            _G.fake.offered()
          end
        end
        if method == "workspace/executeCommand" and params.command == "dg-lsp.fetchModel" then
          _G.fake.fetched = reply
          local value = { kind = "begin", title = "Fetch", message = "12 of 100 MB", percentage = 12 }
          dispatchers.notification("$/progress", { token = 1, value = value })
          return true, id
        end
        local delay = method == "textDocument/inlineCompletion" and _G.fake.delay() or 0
        vim.defer_fn(reply, delay)
        return true, id
      end,
      notify = function(method, params)
        told(method, params)
        if method == "exit" then
          closing = true
          dispatchers.on_exit(0, 0)
        end
        return true
      end,
      is_closing = function()
        return closing
      end,
      terminate = function()
        closing = true
      end,
    }
  end,
})
