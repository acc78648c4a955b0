"""Where untrusted cells run. The only code that knows Docker; it knows no store."""
