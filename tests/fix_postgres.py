"""Real PostgreSQL for the tests: one server a run, one database a test, copied from a migrated template."""
