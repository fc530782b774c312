"""Every command, with its sentence."""

# A command is loaded by name when it is needed: making a token loads no web server and no database. The sentences
# repeat those of the commands, so that listing all of them loads none.
COMMANDS = {
    "up": "Run everything on this machine: embedded servers unless URLs are set, API, worker and keeper.",
    "api": "Answer buyers and operators over HTTP.",
    "worker": "Write admitted orders to the ledger.",
    "keeper": "Open rounds, pass on changes, expire orders, refund, send webhooks, rebuild what the gate lost, audit.",
    "migrate": "Bring the database's schema to this version. Harmless to repeat.",
    "sale": "Create, duplicate, list, show, look back at, change, publish, pause, resume and close sales; add stock.",
    "orders": "List and export orders; cancel and refund one, or all of a sale.",
    "refunds": "List refunds, and note those that were made by hand.",
    "line": "Show the line of a sale, pause and resume it, change its pace, give the public value of its draw, fill it "
    "to try it out.",
    "voucher": "Upload, count, look up and redeem voucher codes.",
    "webhook": "Create, list, show, change, test and delete webhooks; their deliveries and secrets.",
    "operator": "Create, list and revoke operators' keys.",
    "record": "List and export the record of who has changed what.",
    "buyer": "Block and unblock buyers, and end their tokens.",
    "dead": "List, show, replay and discard dead letters: orders that could not be written.",
    "alarm": "List alarms, and send a test alarm.",
    "token": "Tokens for trying things out.",
    "audit": "Check that nothing was oversold, lost or given back twice. Changes nothing, and may run at full load.",
    "repair": "Say what is broken and what would mend it; do it with `--apply`.",
    "doctor": "Check the set-up, list every setting, and say what to mend. Exit code 1 if something is wrong.",
    "backup": "Copy the data folder of `seckill up` while it runs: ledger, gate and secrets as they are at one moment.",
    "restore": "Restore a copy made by `seckill backup` into an empty data folder. Checks every file first.",
    "move": "Copy the ledger from SQLite to PostgreSQL or MariaDB, and compare every row. Stop everything first.",
    "erase": "Put a pseudonym in a buyer's place, everywhere and for good. Orders stay, for the books.",
    "export": "Export everything that is held about one buyer, as JSON.",
    "verify-draw": "Recompute a draw from what was published, without trusting the server that made it.",
    "compare": "Run every design that tutorials teach against the same rush, and show what it sells, loses and costs.",
    "bench": "Measure accepted and persisted orders a second, beside the limits of this machine and a plain service.",
    "rehearse": "Send a growing crowd to a marked sale on a real deployment, and tell which rate is safe and what is "
    "full first.",
    "chaos": "Start everything, let a crowd in, break things on a schedule, audit all along, and tell what held.",
}
# Commands that have subcommands.
GROUPS = (
    "sale",
    "orders",
    "refunds",
    "line",
    "voucher",
    "webhook",
    "operator",
    "record",
    "buyer",
    "dead",
    "alarm",
    "token",
)
