"""The Memory API (CONTRACT B, C): the official SDKs' routes over this database, in process and over HTTP."""
