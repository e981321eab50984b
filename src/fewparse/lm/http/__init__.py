"""Language models behind OpenAI-compatible servers: probed, asked again where that can help, cached, counted."""
