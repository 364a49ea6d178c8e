"""What `tfdp verify` found, for a terminal, as JSON, as a page and as an image."""
