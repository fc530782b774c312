from seckill.cli import main

main()
