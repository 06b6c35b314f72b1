"""QR codes of tables, ready to print. Only `tillbridge tables qr` imports this room."""
