"""`make endure`: hours of faults and millions of admissions, leg after leg, on every set-up; one report in the end.

A leg is a run of `seckill chaos`, or a rush (`rush.py`): as many claims as the machine takes, with faults beside them.
What is finished stays in the folder. After an interruption it begins with the leg that was under way.
"""
