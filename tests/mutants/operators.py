"""Flaws of operators' keys, of the record, and of buyers who are blocked."""

from tests.mutants.mutant import Mutant

_OPERATORS = "tests/api/test_operators.py"
_RECORD = "tests/api/test_operator_record.py"
_BUYERS = "tests/api/test_blocked_buyers.py"
_BOOK = "tests/engine/test_access_book.py"
_SIGN_IN = "tests/api/test_sign_in.py"

_NIGHT = "tests/api/test_night_commands.py"

MUTANTS = (
    Mutant(
        name="All sales that are paused go on, whoever has paused them",
        trap="ours",
        path="cli/every_sale.py",
        edits={' and (words[0]["why"] or "").startswith(STOPPED)': ""},
        caught_by=f"{_NIGHT}::test_all_are_stopped_and_only_those_go_on_again",
    ),
    Mutant(
        name="A stop of all sales leaves out those that the audit may let go on",
        trap="ours",
        path="cli/every_sale.py",
        edits={'            if sale["state"] == "ended":\n': '            if sale["state"] in ("ended", "paused"):\n'},
        caught_by=f"{_NIGHT}::test_all_are_stopped_and_only_those_go_on_again",
    ),
    Mutant(
        name="A sale that could not be stopped is answered like any trouble",
        trap="ours",
        path="web/sales/sales.py",
        edits={'        raise HttpProblem(503, "not_ready", NOT_STOPPED) from None\n': "        raise\n"},
        caught_by=f"{_NIGHT}::test_a_database_that_cannot_be_written_to_stops_nothing_and_that_is_said",
    ),
    Mutant(
        name="One order that cannot be taken back ends the taking back",
        trap="ours",
        path="cli/whole_sale.py",
        edits={"except (Conflict, Invalid, NotFound) as error:": "except (Invalid, NotFound) as error:"},
        caught_by=f"{_NIGHT}::test_an_order_that_is_paid_meanwhile_is_named_and_holds_up_no_other",
    ),
    Mutant(
        name="A draw waits for its operator, and nobody tells them",
        trap="ours",
        path="engine/line/beacons.py",
        edits={"            await self._expect(line, line.listed_ms)\n": ""},
        caught_by=f"{_NIGHT}::test_a_draw_that_waits_for_an_operator_is_told_of_and_the_command_ends_it",
    ),
    Mutant(
        name="Every key may do everything",
        trap="ours",
        path="web/operators/role_check.py",
        edits={"        _require(operator, role)\n": ""},
        caught_by=f"{_OPERATORS}::test_each_role_may_call_what_it_may_and_nothing_else",
    ),
    Mutant(
        name="A route of operators may do without a role",
        trap="ours",
        path="web/route.py",
        edits={'        if (self.who == "operator") is (self.role is None):\n': "        if False:\n"},
        caught_by=f"{_OPERATORS}::test_a_route_of_operators_without_a_role_cannot_be_written",
    ),
    Mutant(
        name="Whoever only reads is shown voucher codes",
        trap="ours",
        path="web/orders/order_list.py",
        edits={"    require_role(request, Role.OPERATOR)\n": ""},
        caught_by=f"{_OPERATORS}::test_a_viewer_sees_no_codes",
    ),
    Mutant(
        name="Any secret will do with the id of a key",
        trap="ours",
        path="engine/access/access_book.py",
        edits={"        if key is None or not is_key(candidate, key.digest):\n": "        if key is None:\n"},
        caught_by=f"{_BOOK}::test_a_key_until_its_end",
    ),
    Mutant(
        name="A revoked key still opens",
        trap="ours",
        path="engine/access/access_book.py",
        edits={"        if key.revoked_ms is not None:\n            return NoOperator.REVOKED\n": ""},
        caught_by=f"{_OPERATORS}::test_a_revoked_key_opens_nothing_on_any_node",
    ),
    Mutant(
        name="A key that another node has just made is a wrong one",
        trap="ours",
        path="engine/access/access_book.py",
        edits={"return await self._found(candidate, PREFIX)": "return self._opened(candidate, PREFIX)"},
        caught_by=f"{_BOOK}::test_a_key_that_another_process_has_made_opens_at_once",
    ),
    Mutant(
        name="Each made-up key is a look at the ledger",
        trap="ours",
        path="engine/access/access_book.py",
        edits={"self._read_at < asked_s - LOOK_AGAIN_S": "self._read_at <= asked_s"},
        caught_by=f"{_BOOK}::test_made_up_keys_cost_few_looks",
    ),
    Mutant(
        name="Only the node that was asked hears of a revoked key",
        trap="ours",
        path="web/node_schedule.py",
        edits={'            repeat("access", ctx.access_book.refresh, stop, LOOK_EVERY_S),\n': ""},
        caught_by=f"{_OPERATORS}::test_a_revoked_key_opens_nothing_on_any_node",
    ),
    Mutant(
        name="A process that cannot read the ledger trusts the keys that it knew",
        trap="ours",
        path="engine/access/access_book.py",
        edits={
            "self._read_at is None or self._monotonic() - self._read_at > EFFECTIVE_WITHIN_S": "self._read_at is None"
        },
        caught_by=f"{_BOOK}::test_a_process_that_cannot_read_the_ledger_trusts_no_named_key",
    ),
    Mutant(
        name="The ledger keeps the keys themselves",
        trap="ours",
        path="engine/access/access_desk.py",
        edits={"digest=digest_of(key)": "digest=key"},
        caught_by=f"{_OPERATORS}::test_a_key_is_shown_once_and_stored_as_a_digest",
    ),
    Mutant(
        name="A change of a sale is not on the record",
        trap="ours",
        path="backends/sql/sales.py",
        edits={"    await _note(connection, database, sale, after)\n": ""},
        caught_by=f"{_RECORD}::test_a_sale_from_its_announcement_to_its_end",
    ),
    Mutant(
        name="A change is committed before it is on the record",
        trap="ours",
        path="backends/sql/sales.py",
        edits={
            "    await _note(connection, database, sale, after)\n": (
                "    await connection.commit()\n    await _note(connection, database, sale, after)\n"
            )
        },
        caught_by=f"{_RECORD}::test_there_is_no_change_without_its_entry_and_no_entry_without_its_change",
    ),
    Mutant(
        name="Who exports codes before their buyers see them is not on the record",
        trap="ours",
        path="web/orders/order_export.py",
        edits={"with acting_as(operator):": "with acting_as(None):"},
        caught_by="tests/api/test_record_of_routes.py::test_each_leaves_its_entry_with_who_and_why",
    ),
    Mutant(
        name="The record tells where a webhook goes, with all that is in its address",
        trap="ours",
        path="backends/sql/record_facts.py",
        edits={"urlsplit(webhook.url).hostname": "webhook.url"},
        caught_by=f"{_RECORD}::test_everything_else_that_operators_change",
    ),
    Mutant(
        name="What buyers do is on the record of operators",
        trap="ours",
        path="backends/sql/line_joining.py",
        edits={"        if user is None:\n": "        if user is not None:\n"},
        caught_by=f"{_RECORD}::test_everything_else_that_operators_change",
    ),
    Mutant(
        name="A blocked buyer goes on claiming",
        trap="ours",
        path="web/claims/claim.py",
        edits={"        if self._barred.active:\n            self._door.refuse_blocked(buyer.user)\n": ""},
        caught_by=f"{_BUYERS}::test_a_blocked_buyer_buys_pays_and_queues_no_more",
    ),
    Mutant(
        name="A blocked buyer goes on paying",
        trap="ours",
        path="web/orders/buyer_orders.py",
        edits={"    ctx.door.refuse_blocked(user)\n": ""},
        caught_by=f"{_BUYERS}::test_a_blocked_buyer_buys_pays_and_queues_no_more",
    ),
    Mutant(
        name="A blocked buyer keeps the place in a line",
        trap="ours",
        path="engine/access/access_desk.py",
        edits={"            await self._lines.leave(entry_id, None, Outcome.BLOCKED.value)\n": "            pass\n"},
        caught_by=f"{_BUYERS}::test_a_blocked_buyer_buys_pays_and_queues_no_more",
    ),
    Mutant(
        name="Who was blocked and is still in a line is served",
        trap="ours",
        path="backends/sql/line_guests.py",
        edits={"if entry.user in found]": "if entry.user not in found and entry.user in found]"},
        caught_by=f"{_BUYERS}::test_who_is_blocked_and_still_in_a_line_is_passed_over",
    ),
    Mutant(
        name="A blocked buyer reads why",
        trap="ours",
        path="engine/access/access_desk.py",
        edits={"leave(entry_id, None, Outcome.BLOCKED.value)": "leave(entry_id, None, reason)"},
        caught_by=f"{_BUYERS}::test_a_blocked_buyer_buys_pays_and_queues_no_more",
    ),
    Mutant(
        name="A process that has just started knows of no blocked buyer",
        trap="ours",
        path="engine/access/access_book.py",
        edits={"        self.active = True  #": "        self.active = False  #"},
        caught_by=f"{_BUYERS}::test_a_node_that_does_not_know_yet_sells_nothing",
    ),
    Mutant(
        name="The short way believes tokens that were ended",
        trap="ours",
        path="web/buyers/buyer_tokens.py",
        edits={"            return buyer if self.trusts(buyer) else None\n": "            return buyer\n"},
        caught_by=f"{_BUYERS}::test_tokens_issued_before_a_moment_are_over",
    ),
    Mutant(
        name="An earlier moment brings ended tokens back",
        trap="ours",
        path="backends/sql/access.py",
        edits={"            if (known.tokens_before_s or 0) >= before_s:\n                return known\n": ""},
        caught_by=f"{_BUYERS}::test_tokens_issued_before_a_moment_are_over",
    ),
    Mutant(
        name="An open stream goes on telling whoever has an ended token",
        trap="ours",
        path="web/live_updates/event_stream.py",
        edits={
            "            if not goes_on or not self._ctx.buyers.trusts(self._buyer):\n": "            if not goes_on:\n"
        },
        caught_by=f"{_BUYERS}::test_an_open_stream_tells_nothing_more",
    ),
    Mutant(
        name="An ID token may answer another question",
        trap="ours",
        path="web/operators/sign_in_provider.py",
        edits={'if not hmac.compare_digest(str(claims["nonce"]).encode(), nonce.encode()):': "if False:"},
        caught_by=f"{_SIGN_IN}::test_what_an_id_token_must_say",
    ),
    Mutant(
        name="An ID token for somebody else lets people in",
        trap="ours",
        path="web/operators/sign_in_provider.py",
        edits={
            "                audience=self._settings.oidc_client_id,\n": "",
            'options={"require"': 'options={"verify_aud": False, "require"',
        },
        caught_by=f"{_SIGN_IN}::test_what_an_id_token_must_say",
    ),
    Mutant(
        name="The header of an ID token decides the algorithm",
        trap="ours",
        path="web/operators/sign_in_provider.py",
        edits={
            "                key.key,\n                algorithms=[key.algorithm],\n": "                None if "
            "jwt.get_unverified_header(token)['alg'] == 'none' else key.key,\n"
            "                algorithms=[jwt.get_unverified_header(token)['alg']],\n",
            'options={"require"': 'options={"verify_signature": "none" != jwt.get_unverified_header(token)["alg"], "require"',
        },
        caught_by=f"{_SIGN_IN}::test_the_key_decides_the_algorithm",
    ),
    Mutant(
        name="An attacker's sign-in is finished in somebody else's browser",
        trap="ours",
        path="web/operators/console_sign_in.py",
        edits={
            'if question is None or not hmac.compare_digest(given.get("state", "").encode(), question.state.encode()):': "if question is None:"
        },
        caught_by=f"{_SIGN_IN}::test_a_state_counts_once_and_in_the_browser_that_asked",
    ),
    Mutant(
        name="One sign-in begins several sessions",
        trap="ours",
        path="domain/operator_key.py",
        edits={
            "    key_id = hashlib.sha256(begun_by.encode()).hexdigest()[: 2 * _ID_BYTES]\n": "    key_id = secrets.token_hex(_ID_BYTES)\n"
        },
        caught_by=f"{_SIGN_IN}::test_a_state_counts_once_and_in_the_browser_that_asked",
    ),
    Mutant(
        name="Pages of others use an operator's session",
        trap="ours",
        path="web/operators/console_session.py",
        edits={'            headers.get(HEADER) == "1"\n            and headers': "            headers"},
        caught_by=f"{_SIGN_IN}::test_another_page_cannot_use_a_session",
    ),
    Mutant(
        name="A session that was signed out of is still good for whoever has copied it",
        trap="ours",
        path="web/operators/console_sign_in.py",
        edits={"                await self._desk.end_session(cookie)\n": "                pass\n"},
        caught_by=f"{_SIGN_IN}::test_signing_out_and_being_signed_out",
    ),
    Mutant(
        name="Whoever may look reads the address that rings the people on call",
        trap="ours",
        path="web/console/system.py",
        edits={
            "    return f\"{parts.scheme}://{parts.netloc.rpartition('@')[2]}/…\" if cut else text\n": "    return text\n"
        },
        caught_by="tests/api/test_system.py::test_no_secret_is_in_it_nor_the_path_of_an_address_that_may_be_one",
    ),
)
