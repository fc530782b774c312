"""Flaws of an API node: what it answers by itself, whose orders it shows, and what operators do."""

from tests.mutants.mutant import Mutant

DESK = "engine/claims/admission_desk.py"
FLAGS = "engine/claims/sold_out.py"

MUTANTS = (
    Mutant(
        name="A key that has made a copy of one sale stands for a copy of another",
        trap="ours",
        path="web/sales/sales.py",
        edits={'{"copy_of": shown.id, "changes": changes}': '{"changes": changes}'},
        caught_by="tests/api/test_duplicate.py::test_one_key_makes_one_sale_however_many_ask",
    ),
    Mutant(
        name="A sold-out flag holds whatever the version",
        trap="F46",
        path=FLAGS,
        edits={
            "            if pulse is None or pulse.version != flag.version or _left(pulse, key) > 0:\n": (
                "            if pulse is None:\n"
            ),
        },
        caught_by="tests/api/test_flags.py::test_a_lost_announcement_is_made_up_for_by_asking",
    ),
    Mutant(
        name="A flag refuses although the gate is known to have another version",
        trap="F46",
        path=DESK,
        edits={"pulse is None or pulse.version != flag.version or claim.user": "pulse is None or claim.user"},
        caught_by="tests/api/test_flags.py::test_a_flag_counts_for_nothing_once_the_gate_is_known_to_have_another_version",
    ),
    Mutant(
        name="A flag outlives a gate that went back to an earlier time",
        trap="ours",
        path=FLAGS,
        edits={" or _left(pulse, key) > 0:\n": ":\n"},
        caught_by="tests/api/test_flags.py::test_a_gate_that_went_back_to_the_same_version_is_not_sold_out",
    ),
    Mutant(
        name="A flag is raised although its version is over",
        trap="F46",
        path=FLAGS,
        edits={"            if self._is_over(ref.id, version):  # while": "            if False:  # while"},
        caught_by="tests/api/test_flags.py::test_a_flag_is_not_raised_for_a_version_that_was_announced_to_be_over",
    ),
    Mutant(
        name="An old announcement withdraws a flag",
        trap="F46",
        path=FLAGS,
        edits={"return version < self._announced.get(round_id, 0)": "return round_id in self._announced"},
        caught_by="tests/api/test_flags.py::test_only_a_newer_version_withdraws_a_flag",
    ),
    Mutant(
        name="A winner who repeats hears that it is sold out",
        trap="F8",
        path=DESK,
        edits={"!= flag.version or claim.user in flag.winners:": "!= flag.version:"},
        caught_by="tests/api/test_claims.py::test_after_the_sell_out_losers_cost_no_call_and_winners_find_their_order[framework]",
    ),
    Mutant(
        name="Losers cost a call to the gate each",
        trap="F20",
        path=DESK,
        edits={"return sold_out if now_ms < round_.ends_ms - EDGE_MS else None": "return None"},
        caught_by="tests/api/test_claims.py::test_after_the_sell_out_losers_cost_no_call_and_winners_find_their_order[framework]",
    ),
    Mutant(
        name="At the edge of two rounds a repeat buys twice",
        trap="F67",
        path=DESK,
        edits={
            "if earlier is not None and (claim.request_id or self._is_at(sale.round.opens_ms)):": "if earlier is not None and self._is_at(0):"
        },
        caught_by="tests/api/test_repeating.py::test_a_winner_who_repeats_after_the_switch_finds_their_order[sqlite]",
    ),
    Mutant(
        name="The node's clock decides at the edge of two rounds",
        trap="F5",
        path=DESK,
        edits={"EDGE_MS = 1_000\n": "EDGE_MS = 0\n"},
        caught_by="tests/api/test_repeating.py::test_a_node_that_is_ahead_of_the_gate_sends_nobody_away[sqlite]",
    ),
    Mutant(
        name="A call whose fate is unclear is said to have done nothing",
        trap="F9",
        path="engine/claims/claim_batches.py",
        edits={"Outcome.NOT_READY if isinstance(error, GateUnavailable) else Outcome.UNKNOWN": "Outcome.NOT_READY"},
        caught_by="tests/engine/claims/test_claim_batches.py::test_without_a_decision_nobody_hangs[error0-unknown]",
    ),
    Mutant(
        name="A buyer who gives up shifts the answers of the others",
        trap="S27",
        path="engine/claims/claim_batches.py",
        edits={
            "        for (_, waiting), answer in zip(batch, answers, strict=True):\n": "        left = [waiting for _, waiting in batch if not waiting.done()]\n"
            "        for waiting, answer in zip(left, answers, strict=False):\n"
        },
        caught_by="tests/engine/claims/test_claim_batches.py::test_a_buyer_who_gives_up_shifts_no_other_answer",
    ),
    Mutant(
        name="What is prepared for a batch is gone when its callers are told, because the next call has been answered",
        trap="ours",
        path="engine/claims/claim_batches.py",
        edits={
            "            self._before_answers(answers)\n": "            pass\n",
            "        answers = await self._ask(batch)\n": "        answers = await self._ask(batch)\n"
            "        self._before_answers(answers)\n",
        },
        caught_by="tests/engine/claims/test_claim_batches.py::"
        "test_the_gate_works_on_the_next_batch_while_the_callers_of_this_one_are_told",
    ),
    Mutant(
        name="Callers get no answer when nothing could be prepared for them",
        trap="ours",
        path="engine/claims/claim_batches.py",
        edits={
            "        except Exception:  # all of them, and those of the call under way, still wait for their answers\n": (
                "        except GateError:\n"
            )
        },
        caught_by="tests/engine/claims/test_claim_batches.py::"
        "test_callers_are_told_though_nothing_could_be_prepared_for_them",
    ),
    Mutant(
        name="The gate has nothing to do while callers are told",
        trap="ours",
        path="engine/claims/claim_batches.py",
        edits={
            "            await asyncio.sleep(0)\n            await asyncio.sleep(0)\n            self._tell(batch, answers)\n": (
                "            self._tell(batch, answers)\n"
            )
        },
        caught_by="tests/engine/claims/test_claim_batches.py::"
        "test_the_gate_works_on_the_next_batch_while_the_callers_of_this_one_are_told",
    ),
    Mutant(
        name="Made-up sale ids reach the database",
        trap="F71",
        path="engine/sale_cache.py",
        edits={"if number is None or not 0 < number < SALE_NUMBER_MAX:": "if number is None:"},
        caught_by="tests/api/test_sales.py::test_unknown_sales_cost_neither_gate_nor_ledger",
    ),
    Mutant(
        name="The list of sales is written down for each who asks",
        trap="ours",
        path="web/sales/sale_list.py",
        edits={"if known is not None and known[0] == news": "if known is not None and known[0] < 0"},
        caught_by="tests/api/test_sales.py::test_the_list_is_made_once_for_all_who_ask_and_anew_when_anything_changes",
    ),
    Mutant(
        name="A list of sales that is kept misses what was learnt",
        trap="ours",
        path="engine/sale_cache.py",
        edits={"        self.news += 1\n        self._sales[sale.id] =": "        self._sales[sale.id] ="},
        caught_by="tests/api/test_sales.py::test_the_list_is_made_once_for_all_who_ask_and_anew_when_anything_changes",
    ),
    Mutant(
        name="Each who asks for an order that is not there reads the catalogue",
        trap="ours",
        path="engine/orders/buyer_orders.py",
        edits={"await self._sale_cache.look_again()": "await self._sale_cache.refresh_sales()"},
        caught_by="tests/api/test_orders.py::"
        "test_a_crowd_that_asks_for_orders_that_are_not_there_reads_the_catalogue_once_or_twice",
    ),
    Mutant(
        name="A sale that was heard of while an order was looked for does not count",
        trap="ours",
        path="engine/orders/buyer_orders.py",
        edits={
            "            held, doubtful = await self._held(user, refs)\n": "            held, doubtful = await self._held(user, refs)\n            refs = self._sale_cache.recent_rounds(number.lane)\n"
        },
        caught_by="tests/api/test_orders.py::test_an_order_is_found_though_the_node_hears_of_its_sale_while_it_looks",
    ),
    Mutant(
        name="Each who looks at an order asks the ledger alone",
        trap="ours",
        path="engine/batched_reads.py",
        edits={"BATCH_MAX = 500": "BATCH_MAX = 1"},
        caught_by="tests/engine/test_shared_look.py::"
        "test_all_who_look_at_their_orders_at_once_are_a_query_for_hundreds",
    ),
    Mutant(
        name="Each who asks whether it is ready asks the servers",
        trap="ours",
        path="engine/readiness.py",
        edits={'return await self._looking.of("all", self._look)': "return await self._look()"},
        caught_by="tests/engine/test_shared_look.py::test_who_asks_whether_it_is_ready_shares_one_look",
    ),
    Mutant(
        name="A crowd at a new sale is a query each",
        trap="ours",
        path="engine/sale_cache.py",
        edits={"self.look_again = SharedLook(self.refresh_sales)": "self.look_again = self.refresh_sales"},
        caught_by="tests/engine/test_shared_look.py::"
        "test_a_crowd_that_knows_of_a_sale_before_the_node_does_is_one_query",
    ),
    Mutant(
        name="A look that began too early is shared",
        trap="ours",
        path="engine/shared_look.py",
        edits={
            "        self._under_way, self._next = self._next, None\n        await self._look()\n": "        await self._look()\n        self._under_way, self._next = self._next, None\n"
        },
        caught_by="tests/engine/test_shared_look.py::test_whoever_comes_after_a_look_began_is_told_what_is_true_now",
    ),
    Mutant(
        name="Another buyer's order is shown",
        trap="S8",
        path="engine/orders/buyer_orders.py",
        edits={"return recorded(order) if order.user == user else None": "return recorded(order)"},
        caught_by="tests/api/test_orders.py::test_another_buyers_order_is_as_unknown_as_none",
    ),
    Mutant(
        name="A watch goes back to an older state",
        trap="F57",
        path="engine/orders/buyer_orders.py",
        edits={"    return order.state in states_after(known.state)\n": "    return True\n"},
        caught_by="tests/engine/orders/test_buyer_orders.py::test_a_watch_never_goes_back",
    ),
    Mutant(
        name="Public ids are the numbers themselves",
        trap="F21",
        path="domain/public_id.py",
        edits={
            "        left, right = right, left ^ scrambled\n": "        pass\n",
            '            left, right = right ^ int.from_bytes(scrambled, "little"), left\n': "            pass\n",
        },
        caught_by="tests/domain/test_public_id.py::test_neighbours_look_unrelated",
    ),
    Mutant(
        name="A token may be signed in any way that the key allows",
        trap="S2",
        path="web/buyers/buyer_tokens.py",
        edits={"algorithms=[key.algorithm],": 'algorithms=[key.algorithm, "RS384", "RS512", "PS256"],'},
        caught_by="tests/web/buyers/test_buyer_tokens.py::test_another_algorithm_of_the_same_key_is_refused",
    ),
    Mutant(
        name="A repeat counts twice for the rate limit",
        trap="ours",
        path="web/claims/claim.py",
        edits={"        if BEGUN in scope:\n": "        if False:\n"},
        caught_by="tests/api/test_short_way.py::test_a_repeat_is_counted_once_by_the_rate_limit",
    ),
    Mutant(
        name="Closing a sale leaves its next round open for a moment",
        trap="ours",
        path="engine/rounds/operator_changes.py",
        edits={
            "rounds = [sale.round, *(each for each in later if each.ordinal > sale.round.ordinal)]": "rounds = [sale.round]"
        },
        caught_by="tests/api/test_repeating_operators.py::test_closing_a_sale_closes_the_next_round_in_the_same_moment[sqlite]",
    ),
    Mutant(
        name="A sale may be in a currency that does not exist",
        trap="ours",
        path="web/sales/sale_checks.py",
        edits={"    if new.currency not in DECIMALS:\n": "    if not new.currency:\n"},
        caught_by="tests/api/test_sales.py::test_bad_fields_are_named",
    ),
    Mutant(
        name="Two that announce one sale at once make two",
        trap="ours",
        path="backends/sql/sales.py",
        edits={
            "    await lock_catalogue(connection)\n    known = await announced(connection, key)\n": "    known = None\n",
            "    await connection.execute(\n        insert(sale_keys)": "    _ = (\n        insert(sale_keys)",
        },
        caught_by="tests/backends/sql/test_goods.py::test_however_many_announce_at_once_there_is_one_sale[sqlite]",
    ),
    Mutant(
        name="A sale that goes on again shares its shop's id with another",
        trap="ours",
        path="backends/sql/sales.py",
        edits={
            "if external_id is not None and (decision.goods or decision.round):": "if external_id is not None and decision.goods:"
        },
        caught_by="tests/backends/sql/test_goods.py::test_a_sale_that_goes_on_needs_its_id_again[sqlite]",
    ),
    Mutant(
        name="A hidden sale is open in the gate",
        trap="ours",
        path="domain/sale.py",
        edits={"shut = not (self.published and self.covered)": "shut = not self.covered"},
        caught_by="tests/api/test_goods.py::test_a_node_that_has_not_heard_yet_sells_nothing_of_a_hidden_sale",
    ),
    Mutant(
        name="A draft can be claimed by its id",
        trap="ours",
        path="engine/sale_cache.py",
        edits={"        if sale.published:\n": "        if True:\n"},
        caught_by="tests/api/test_goods.py::test_buyers_do_not_know_of_a_draft",
    ),
    Mutant(
        name="A cache gives an operator's answer to buyers",
        trap="ours",
        path="web/sales/sales.py",
        edits={
            "    return json_response(Sales(sales, rfc3339(ctx.sale_cache.now_ms()), older))\n": "    return cacheable(request, Sales(sales, rfc3339(ctx.sale_cache.now_ms()), older), MAX_AGE_S)\n"
        },
        caught_by="tests/api/test_goods.py::test_no_cache_gives_an_operators_answer_to_buyers",
    ),
    Mutant(
        name="Two encodings of one name are two buyers",
        trap="S6",
        path="domain/buyer_id.py",
        edits={'    composed = unicodedata.normalize("NFC", text)\n': "    composed = text\n"},
        caught_by="tests/api/test_buyer_ids.py::test_two_encodings_of_one_name_have_one_limit",
    ),
    Mutant(
        name="Digits of another width are another buyer",
        trap="S6",
        path="domain/buyer_id.py",
        edits={'        if unicodedata.normalize("NFKC", char) != char:\n': "        if False:\n"},
        caught_by="tests/web/buyers/test_buyer_tokens.py::test_users_that_are_refused[\\uff17-U+FF17 (FULLWIDTH DIGIT SEVEN)]",
    ),
)
