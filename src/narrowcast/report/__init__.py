"""Results as pages, tables and JSON: pure functions of result objects. Heavy libraries load on use."""
