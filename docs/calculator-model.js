// The constants of seckill/lab/rehearsal/capacity.py: `make calculator` writes this file.

globalThis.SECKILL_MODEL = {
  "planned": 0.7,
  "connectionsEach": 50000,
  "apiUs": 67,
  "gateUs": 18,
  "gateBytes": 66,
  "heldS": 1.08,
  "pressBytes": 1657.0,
  "ledgers": {
    "sqlite": {
      "workerUs": 45,
      "databaseUs": 0
    },
    "postgresql": {
      "workerUs": 12,
      "databaseUs": 33
    },
    "mariadb": {
      "workerUs": 30,
      "databaseUs": 40
    }
  },
  "memoryMb": {
    "api": 108,
    "worker": 80,
    "keeper": 93
  }
};
