"""The parts of a claim that are compiled where there is a C compiler: reading it (`kernel.c`) and sending its answer
together with others (`ring.c`). Elsewhere Python does the same. `docs/speed.md` says what it saves.

`python -m seckill.native` compiles them for the Python that runs this, and `python -m seckill.native --remove` goes
back to Python alone.
"""
