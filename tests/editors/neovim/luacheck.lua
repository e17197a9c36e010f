-- Runs luacheck in Neovim's own Lua: nvim -l luacheck.lua OPTIONS FILES. LUA_PATH and LUA_CPATH say where it lies.
require("luacheck.main")
