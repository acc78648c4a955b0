"""The commands of the magics, a module a group; `table.MAGICS` lists them."""
