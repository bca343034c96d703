"""New room."""
