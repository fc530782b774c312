"""Flaws of items: stock, price and limit over sizes and colours."""

from tests.mutants.mutant import Mutant

ADMIT = "backends/redis/lua/admit.lua"
GATE = "tests/backends/gate/test_items.py"
LEDGER = "tests/backends/sql/test_items.py"
API = "tests/api/test_items.py"

MUTANTS = (
    Mutant(
        name="An item sells what another has left",
        trap="ours",
        path=ADMIT,
        edits={"(item and item.available or available) < quantity": "available < quantity"},
        caught_by=f"{GATE}::test_one_item_sells_out_and_the_other_goes_on[valkey]",
    ),
    Mutant(
        name="A key is the same for another item",
        trap="ours",
        path=ADMIT,
        edits={"known[2] == quantity and known[3] == mark and 'repeated'": "known[2] == quantity and 'repeated'"},
        caught_by=f"{GATE}::test_one_item_sells_out_and_the_other_goes_on[valkey]",
    ),
    Mutant(
        name="A claim that names no item is sold one all the same",
        trap="ours",
        path=ADMIT,
        edits={
            "if not valid(quantity) or stock and not item then": "if not valid(quantity) then",
            "  if stock then text": "  if stock and stock[items[i]] then text",
        },
        caught_by=f"{GATE}::test_a_claim_names_an_item_of_its_round[valkey]",
    ),
    Mutant(
        name="Items that do not add up to their round are sold",
        trap="F2",
        path=ADMIT,
        edits={"  return left == available and sold == admitted": "  return true"},
        caught_by=f"{GATE}::test_a_lost_count_of_an_item_is_noticed[valkey-available:7]",
    ),
    Mutant(
        name="A unit comes back to no item",
        trap="ours",
        path="backends/redis/lua/release.lua",
        edits={"          if stock then stock[item_of(held)] = stock[item_of(held)] + quantity end\n": ""},
        caught_by=f"{GATE}::test_a_unit_comes_back_to_its_item[valkey]",
    ),
    Mutant(
        name="Units that are added to an item are not put on sale",
        trap="ours",
        path="backends/redis/lua/update_round.lua",
        edits={
            "counts[#counts + 1] = tonumber(item[nth]) + more": "counts[#counts + 1] = tonumber(item[nth]) + (nth < 3 and more or 0)"
        },
        caught_by=f"{GATE}::test_units_are_added_to_an_item[valkey]",
    ),
    Mutant(
        name="A rebuilt item has its full stock again",
        trap="F3",
        path="backends/redis/lua/rebuild.lua",
        edits={"'available:' .. item, units - sold + back)": "'available:' .. item, units)"},
        caught_by=f"{GATE}::test_a_rebuilt_round_has_each_items_units[valkey]",
    ),
    Mutant(
        name="Lanes move units of whichever item",
        trap="ours",
        path="engine/rounds/shared_gate.py",
        edits={
            "_share(ref, lane), epoch, origin, sent, item) or 0": "_share(ref, lane), epoch, origin, sent, min(item, 7)) or 0"
        },
        caught_by=f"{GATE}::test_over_several_lanes_each_item_sells_to_the_last_unit[memory]",
    ),
    Mutant(
        name="The rule takes a key for the same with another item",
        trap="ours",
        path="domain/admission.py",
        edits={
            "same = (known.quantity, known.item) == (claim.quantity, claim.item)": "same = known.quantity == claim.quantity"
        },
        caught_by=f"{GATE}::test_one_item_sells_out_and_the_other_goes_on[memory]",
    ),
    Mutant(
        name="A gate that has lost its items is not noticed",
        trap="ours",
        path="engine/rounds/losses.py",
        edits={"    return pulse.items.keys() != {item.id for item in round_.items}": "    return False"},
        caught_by=f"{API}::test_lost_counts_of_items_are_found_and_mended[items]",
    ),
    Mutant(
        name="The ledger sells more of an item than there is",
        trap="ours",
        path="backends/sql/record_orders.py",
        edits={
            "            for item, units_of_item in sorted(of_items.items()) if NO_ITEM not in of_items else ():": "            for item, units_of_item in ():"
        },
        caught_by=f"{LEDGER}::test_no_more_of_an_item_is_sold_than_there_is[sqlite]",
    ),
    Mutant(
        name="An order of an item of another sale is written",
        trap="ours",
        path="backends/sql/record_orders.py",
        edits={"and_(items.c.id == item, items.c.sale_id == rounds.c.sale_id)": "items.c.id == item"},
        caught_by=f"{LEDGER}::test_an_order_names_an_item_of_its_sale[sqlite-another sale's]",
    ),
    Mutant(
        name="Every item costs what the cheapest does",
        trap="ours",
        path="backends/sql/record_orders.py",
        edits={
            "_new_orders(batch, now_ms, func.coalesce(items.c.price_cents, sales.c.price_cents))": "_new_orders(batch, now_ms)"
        },
        caught_by=f"{LEDGER}::test_an_order_has_its_items_price_and_unit[sqlite]",
    ),
    Mutant(
        name="In the ledger, a unit goes back to no item",
        trap="ours",
        path="backends/sql/end_orders.py",
        edits={"                await connection.execute(self._give_item_back, wanted)": "                pass"},
        caught_by=f"{LEDGER}::test_a_unit_goes_back_to_its_item[sqlite]",
    ),
    Mutant(
        name="A late payment gets whichever item is there",
        trap="ours",
        path="engine/money/late_payments.py",
        edits={"old.metadata, old.item, early_ms, old.person)": "old.metadata, early_ms=early_ms)"},
        caught_by="tests/api/payments/test_late.py::test_a_late_payment_is_for_the_same_item[sqlite-True]",
    ),
    Mutant(
        name="Every claim for an item that is gone asks the gate",
        trap="ours",
        path="engine/claims/admission_desk.py",
        edits={"(round_.id, claim.item) if claim.item else round_.id": "round_.id"},
        caught_by=f"{API}::test_a_sold_out_item_is_refused_without_the_gate",
    ),
    Mutant(
        name="Buyers name an item of another sale",
        trap="ours",
        path="web/sales/items.py",
        edits={
            '    if number is None or sale.item(number) is None:\n        raise unknown_item("item_id")': '    if number is None:\n        raise unknown_item("item_id")'
        },
        caught_by=f"{API}::test_an_item_of_another_sale_is_unknown",
    ),
    Mutant(
        name="The audit does not add up the units of an item",
        trap="ours",
        path="audit/item_checks.py",
        edits={'        _judge_stock(stock, f"item {item}", add, "stock", notes)\n': "        pass\n"},
        caught_by="tests/audit/test_items.py::test_what_is_wrong_with_an_item_is_named[sqlite-a unit of another item]",
    ),
    Mutant(
        name="The audit does not compare items with the orders in the ledger",
        trap="ours",
        path="audit/item_checks.py",
        edits={"        if sold != live_units:": "        if sold < 0:"},
        caught_by="tests/audit/test_items.py::test_what_is_wrong_with_an_item_is_named[sqlite-counted as another item]",
    ),
)
