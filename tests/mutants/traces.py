"""Flaws of traces: a trace that breaks, one that costs those who are not traced, and one that a stranger can ask for."""

from tests.mutants.mutant import Mutant

TRACES = "tests/api/test_traces.py"
WHOLE = f"{TRACES}::test_an_order_is_one_trace_from_the_press_to_the_shop"

MUTANTS = (
    Mutant(
        name="What an order is traced under is lost at the worker",
        trap="ours",
        path="engine/traces/traced_worker.py",
        edits={"admission=structs.replace(admission, trace=spans[-1].context)": "admission=admission"},
        caught_by=WHOLE,
    ),
    Mutant(
        name="The ledger forgets what an order is traced under",
        trap="ours",
        path="backends/sql/end_orders.py",
        edits={'        trace=row.trace or "",\n': ""},
        caught_by="tests/backends/sql/test_record.py::test_remembers_what_an_order_is_traced_under[sqlite]",
    ),
    Mutant(
        name="A webhook does not say under what its shop can go on",
        trap="ours",
        path="engine/traces/traced_delivery.py",
        edits={"(*headers, (HEADER, span.context))": "headers"},
        caught_by=WHOLE,
    ),
    Mutant(
        name="Messages of the broker do not carry what an order is traced under",
        trap="ours",
        path="backends/rabbitmq/courier.py",
        edits={", ENTRY: delivery.entry_id, **traced}": ", ENTRY: delivery.entry_id}"},
        caught_by=f"{TRACES}::test_also_by_way_of_a_broker",
    ),
    Mutant(
        name="A claim that is not traced pays for tracing",
        trap="ours",
        path="web/claims/traced_protocol.py",
        edits={"        if under is None:\n": "        if sampling is None:\n"},
        caught_by=f"{TRACES}::test_a_claim_that_is_not_traced_goes_the_quick_way",
    ),
    Mutant(
        name="Where traces are off, claims are asked whether they are traced",
        trap="ours",
        path="web/app.py",
        edits={"    if engine.tracer is None:\n        return None\n    tracing": "    tracing"},
        caught_by=f"{TRACES}::test_nothing_of_traces_is_there_while_they_are_off",
    ),
    Mutant(
        name="Whoever asks has everything traced",
        trap="ours",
        path="engine/traces/sampling.py",
        edits={"if parent.sampled and self._asked.take() else None": "if parent.sampled else None"},
        caught_by="tests/engine/traces/test_sampling.py"
        "::test_no_caller_can_have_everything_traced_or_use_up_what_is_ours",
    ),
    Mutant(
        name="A stranger decides what is traced",
        trap="ours",
        path="web/claims/traced_claims.py",
        edits={"believed = len(said) == 1 and self._addresses.is_near(peer)": "believed = len(said) == 1"},
        caught_by="tests/web/claims/test_traced_claims.py"
        "::test_a_stranger_cannot_have_a_claim_traced_or_put_it_into_another_trace",
    ),
    Mutant(
        name="An entry that is traced has a field that earlier versions refuse",
        trap="ours",
        path="backends/redis/lua/admit.lua",
        edits={
            "  return text .. '}'\n": "  if traced[nth] then text = text .. ',\"trace\":1' end\n  return text .. '}'\n"
        },
        caught_by="tests/backends/gate/test_traces.py::test_each_entry_has_what_its_claim_is_traced_under[valkey]",
    ),
    Mutant(
        name="A collector that is silent keeps a role from ending",
        trap="ours",
        path="backends/otel/tracer.py",
        edits={"async with asyncio.timeout(LAST_WORDS_S):": "async with asyncio.timeout(None):"},
        caught_by="tests/backends/otel/test_tracer.py::test_a_collector_that_is_silent_costs_spans_and_nothing_else",
    ),
    Mutant(
        name="The log does not say in which trace a claim failed",
        trap="ours",
        path="web/claims/traced_claims.py",
        edits={"bound_contextvars(trace_id=span.trace_id)": "bound_contextvars()"},
        caught_by=f"{TRACES}::test_the_log_of_a_traced_claim_names_its_trace",
    ),
)
