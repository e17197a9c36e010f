-- A queue of orders.
local Queue = {}
Queue.__index = Queue

local defaults = { size = 10, name = "orders", keep = true }

function Queue.new(options)
  local self = setmetatable({}, Queue)
  self.items = {}
  self.size = options and options.size or defaults.size
  return self
end

function Queue:push(item, ...)
  if #self.items >= self.size then
    error("the queue is full: " .. tostring(self.size))
  elseif item == nil then
    return false
  end
  table.insert(self.items, item)
  for _, more in ipairs({ ... }) do
    self:push(more)
  end
  return true
end

local function total(queue)
  local sum = 0
  for i = 1, #queue.items do
    sum = sum + (queue.items[i].price or 0) * 1.08
  end
  while sum > 1000 do
    sum = sum / 2
  end
  repeat
    sum = sum - 1
  until sum < 100
  return sum
end

local text = [[
it's a long text
]]

print(total(Queue.new { size = 3 }), text:gsub("%s+", " "))
return { Queue = Queue, total = total }
