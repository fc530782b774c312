"""The part of a claim that is compiled where there is a C compiler (`kernel.c`). Elsewhere its twins in Python do the
same. `docs/speed.md` says what it saves.

    python -m seckill.native compiles it for the Python that runs this python -m seckill.native --remove goes back to
    Python alone
"""
