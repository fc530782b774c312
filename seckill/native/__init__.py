"""The part of a claim that is compiled where there is a C compiler (`kernel.c`). Everywhere else its twins in Python do
the same: see `docs/speed.md` for what it saves.

    python -m seckill.native            compiles it, for the Python that runs this
    python -m seckill.native --remove   goes back to Python alone
"""
