"""The explorer: a page for people and an HTTP API for programs."""
