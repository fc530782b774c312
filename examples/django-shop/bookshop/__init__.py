"""A small bookshop that holds flash sales with seckill, server to server."""
