"""History as tables: `frames` makes DataFrames of records, `sql` runs read-only SQL over this database.

Both import pandas or DuckDB at their top, which takes longer than all the rest of memkernel. So
callers import them inside the function that needs them, and nothing that `%load_ext memkernel`
reaches imports them at module level.
"""
