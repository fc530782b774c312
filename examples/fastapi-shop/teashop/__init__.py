"""A small tea shop that holds flash sales with seckill."""
