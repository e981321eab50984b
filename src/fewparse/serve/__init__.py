"""The HTTP server: an API, a playground for the browser, and MCP."""
