"""The commands of `%memory`, a module a group; `table.COMMANDS` lists them."""
