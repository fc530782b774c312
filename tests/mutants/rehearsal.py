"""Flaws of a rehearsal: what it leaves behind, and whom it bothers."""

from tests.mutants.mutant import Mutant

SALE = "lab/rehearsal/marked_sale.py"
INTERRUPTED = "tests/e2e/test_rehearse.py::test_an_interrupted_rehearsal_leaves_nothing_on_sale"

MUTANTS = (
    Mutant(
        name="A rehearsal that is interrupted leaves its sale open",
        trap="ours",
        path=SALE,
        edits={
            "    try:\n        yield marked\n    finally:\n        await": "    yield marked\n    if marked:\n        await"
        },
        caught_by=INTERRUPTED,
    ),
    Mutant(
        name="A rehearsal costs money where real money is taken",
        trap="ours",
        path=SALE,
        edits={"SMALLEST_PRICE_CENTS if costs else 0": "SMALLEST_PRICE_CENTS"},
        caught_by=INTERRUPTED,
    ),
    Mutant(
        name="A rehearsal takes a test with real payments for a sandbox",
        trap="ours",
        path="lab/rehearsal/deployment.py",
        edits={'is_test and _fact(page, "sandbox") == "on"': "is_test"},
        caught_by=INTERRUPTED,
    ),
    Mutant(
        name="Simulated people take the places of real ones",
        trap="ours",
        path="lab/line_crowd.py",
        edits={"        if not deployment.no_money_moves:": "        if not deployment:"},
        caught_by="tests/e2e/test_line_crowd.py::test_simulated_people_take_no_place_of_real_ones",
    ),
    Mutant(
        name="A rehearsal begins although a sale is about to",
        trap="ours",
        path="lab/rehearsal/deployment.py",
        edits={"if _soon(sale.begins_at, sale.server_time, lasts_s):": "if False:"},
        caught_by="tests/lab/rehearsal/test_report.py::test_real_sales_that_are_on_or_near_are_noticed",
    ),
    Mutant(
        name="A rehearsal blames the deployment for a sender that is late",
        trap="ours",
        path="lab/rehearsal/judgement.py",
        edits={
            "NOT_THE_DEPLOYMENT = (Bottleneck.SENDER, Bottleneck.LIMITS, Bottleneck.MACHINE)": "NOT_THE_DEPLOYMENT = ()"
        },
        caught_by="tests/lab/rehearsal/test_judgement.py::test_the_exit_code_says_whether_the_need_is_met",
    ),
)
