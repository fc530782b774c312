"""Flaws of what stands before the gate: limits of an address, passes, invitations."""

from tests.mutants.mutant import Mutant

_ONE_ADDRESS = "tests/api/test_address_limits.py::test_many_names_from_one_address_are_one"
_RATE = "tests/engine/door/test_address_rate.py"
_PASS = "tests/api/test_passes.py"
_SEAL = "tests/domain/test_pass_seal.py::test_a_pass_is_its_buyers_for_its_round_and_its_time"
_WORK = "tests/domain/test_proof_of_work.py"
_AUDIENCE = "tests/api/test_audience.py"
_SERVICES = "tests/api/test_door_services.py"
_LATE = "tests/api/payments/test_late.py"

MUTANTS = (
    Mutant(
        name="The quick way of a claim knows no limit of an address",
        trap="ours",
        path="web/claims/claim_protocol.py",
        edits={"        return self._counted_address(data) if self._claims.limits_addresses else": "        return "},
        caught_by=f"{_ONE_ADDRESS}[bytes]",
    ),
    Mutant(
        name="Anybody chooses the address that is counted",
        trap="ours",
        path="web/requests/client_address.py",
        edits={"        if not self.trusts(peer):\n            return peer\n": ""},
        caught_by="tests/api/test_address_limits.py::test_the_connections_address_counts_where_the_peer_is_no_proxy_of_ours",
    ),
    Mutant(
        name="The body of a claim says whose it is",
        trap="ours",
        path="web/claims/claim_protocol.py",
        edits={"_FORWARDED.findall(data, 0, data.find(_END))": "_FORWARDED.findall(data)"},
        caught_by="tests/api/test_address_limits.py::test_nothing_in_the_body_is_taken_for_a_header",
    ),
    Mutant(
        name="Whoever presses on while refused is forgotten in a flood of addresses",
        trap="ours",
        path="engine/door/address_rate.py",
        edits={
            "        self._newer[address] = until + self._each_s if allowed else until\n": "        if allowed:\n            self._newer[address] = until + self._each_s\n"
        },
        caught_by=f"{_RATE}::test_a_million_addresses_take_a_bounded_memory_and_let_nobody_off",
    ),
    Mutant(
        name="Addresses without end take memory without end",
        trap="ours",
        path="engine/door/address_rate.py",
        edits={" or len(self._newer) >= self._addresses_max // 2:": ":"},
        caught_by=f"{_RATE}::test_a_million_addresses_take_a_bounded_memory_and_let_nobody_off",
    ),
    Mutant(
        name="A sale that demands a pass is pressed without one",
        trap="ours",
        path="web/door/claim_door.py",
        edits={"        if door.pass_kind is not PassKind.NONE and not": "        if False and not"},
        caught_by=f"{_PASS}::test_only_a_pass_of_ones_own_for_this_sale_lets_in[bytes]",
        also=(f"{_PASS}::test_only_a_pass_of_ones_own_for_this_sale_lets_in[framework]",),
    ),
    Mutant(
        name="A pass is good for whoever shows it",
        trap="ours",
        path="domain/pass_seal.py",
        edits={'b"%d %b %b" % (round_id, end, user.encode())': 'b"%d %b" % (round_id, end)'},
        caught_by=_SEAL,
        also=(f"{_PASS}::test_only_a_pass_of_ones_own_for_this_sale_lets_in[bytes]",),
    ),
    Mutant(
        name="A pass is good for every round",
        trap="ours",
        path="domain/pass_seal.py",
        edits={'b"%d %b %b" % (round_id, end, user.encode())': 'b"%b %b" % (end, user.encode())'},
        caught_by=_SEAL,
        also=(f"{_PASS}::test_a_pass_of_one_round_is_none_for_the_next_but_for_the_second_between_them",),
    ),
    Mutant(
        name="A pass never ends",
        trap="ours",
        path="domain/pass_seal.py",
        edits={" or int(end) <= now_s:": ":"},
        caught_by=_SEAL,
        also=(f"{_PASS}::test_a_challenge_and_a_pass_end",),
    ),
    Mutant(
        name="One buyer's work is done for all",
        trap="ours",
        path="domain/proof_of_work.py",
        edits={"        if not hmac.compare_digest(self._tag(round_id, user), found[2]):\n": "        if False:\n"},
        caught_by=f"{_WORK}::test_it_is_of_use_to_nobody_else_nowhere_else_and_not_for_ever",
        also=(f"{_PASS}::test_a_solution_shown_again_is_the_same_buyers_pass_again",),
    ),
    Mutant(
        name="Whoever poses the challenge knows the number",
        trap="ours",
        path="domain/proof_of_work.py",
        edits={"if found is None or not ours or _hash": "if found is None or _hash"},
        caught_by=f"{_WORK}::test_a_made_up_challenge_is_worth_nothing",
    ),
    Mutant(
        name="Digits of the number are taken for the end of the salt",
        trap="ours",
        path="domain/proof_of_work.py",
        edits={
            "&for=([0-9a-f]{10})&": "&for=([0-9a-f]{10})[0-9a-f]*",
            "&for={self._tag(round_id, user)}&": "&for={self._tag(round_id, user)}",
        },
        caught_by=f"{_WORK}::test_no_digit_of_the_number_can_be_taken_for_one_of_the_salt",
    ),
    Mutant(
        name="It does not get harder for who asks for many",
        trap="ours",
        path="engine/door/work_difficulty.py",
        edits={"        self._asked.wait_s(address, now)\n": ""},
        caught_by=f"{_PASS}::test_it_gets_harder_with_how_many_an_address_asks_for",
    ),
    Mutant(
        name="A quotation mark that a client left open hides whose a request is",
        trap="ours",
        path="web/requests/client_address.py",
        edits={"rb'(?=(?:^|[;,])": "rb'(?:(?:^|[;,])"},
        caught_by="tests/web/requests/test_client_address.py::test_only_proxies_of_ours_say_whose_a_request_is",
    ),
    Mutant(
        name="Nonsense for the captcha service is worth what counts while it is away",
        trap="ours",
        path="backends/door/json_service.py",
        edits={"_NOT_UNDERSTOOD = (400, 413, 422)": "_NOT_UNDERSTOOD = ()"},
        caught_by=f"{_SERVICES}::test_who_sends_nonsense_to_the_service_does_not_get_what_counts_while_it_is_away",
    ),
    Mutant(
        name="A captcha's response is believed without asking",
        trap="ours",
        path="engine/door/pass_desk.py",
        edits={
            "passed = self._check is not None and await self._check.passed(response, applicant.address)": "passed = True"
        },
        caught_by=f"{_SERVICES}::test_a_response_of_the_service_is_worth_a_pass_once",
    ),
    Mutant(
        name="A service that hangs takes thread after thread",
        trap="ours",
        path="backends/door/json_service.py",
        edits={"        if self._asking >= AT_ONCE_MAX:\n": "        if False:\n"},
        caught_by=f"{_SERVICES}::test_a_service_that_hangs_holds_up_no_more_than_its_threads",
    ),
    Mutant(
        name="A risk hook that is away lets everybody through",
        trap="ours",
        path="engine/door/pass_desk.py",
        edits={"            return self._risk_fallback\n": "            return RiskDecision.ALLOW\n"},
        caught_by=f"{_SERVICES}::test_when_the_hook_is_away_what_was_declared_counts[deny-403-trouble1]",
    ),
    Mutant(
        name="Who is not invited may buy",
        trap="ours",
        path="engine/door/audience_check.py",
        edits={"        return 0 if listed else NotInvited.NOT_INVITED\n": "        return 0\n"},
        caught_by=f"{_AUDIENCE}::test_only_its_groups_are_let_in[bytes]",
        also=(f"{_AUDIENCE}::test_a_list_lets_in_whom_it_names",),
    ),
    Mutant(
        name="A list that is not here yet invites nobody",
        trap="ours",
        path="engine/door/audience_lists.py",
        edits={"            return None if list_version else False\n": "            return False\n"},
        caught_by=f"{_AUDIENCE}::test_while_a_node_reads_the_list_nobody_is_told_anything",
    ),
    Mutant(
        name="Early access is for everybody in the gate",
        trap="ours",
        path="backends/redis/lua/admit.lua",
        edits={
            "if early then opens_ms = begins_ms - early[i] end": "if early then opens_ms = begins_ms - early[1] end"
        },
        caught_by="tests/backends/gate/test_early_access.py::test_each_claim_of_a_batch_has_its_own_beginning[valkey]",
    ),
    Mutant(
        name="The node's clock decides who is early",
        trap="F5",
        path="backends/redis/lua/admit.lua",
        edits={
            "  if now_ms < opens_ms then return 'not_started' end\n": "  if not early and now_ms < opens_ms then return 'not_started' end\n"
        },
        caught_by=f"{_AUDIENCE}::test_the_gates_clock_decides_about_early_access_too",
        also=("tests/backends/gate/test_early_access.py::test_each_claim_of_a_batch_has_its_own_beginning[valkey]",),
    ),
    Mutant(
        name="Whoever comes early is told the beginning of the others",
        trap="ours",
        path="web/claims/claim.py",
        edits={"begins_ms = sale.round.begins_ms - claim.early_ms  #": "begins_ms = sale.round.begins_ms  #"},
        caught_by=f"{_AUDIENCE}::test_early_groups_begin_earlier_and_all_others_are_told_when[bytes]",
    ),
    Mutant(
        name="Half of a list is read with half of the next",
        trap="ours",
        path="backends/sql/audience.py",
        edits={
            "                if version == await _version(connection, sale_id):\n": "                if True:\n",
            "            await connection.execute(delete(audience_parts).where(_parts.sale_id == sale_id))\n": "",
        },
        caught_by="tests/backends/sql/test_audience.py::test_a_list_is_replaced_as_a_whole[sqlite]",
    ),
    Mutant(
        name="Who was taken off the list may still pay late",
        trap="ours",
        path="engine/door/late_guests.py",
        edits={"        list_decides = audience.listed and not": "        list_decides = False and not"},
        caught_by=f"{_LATE}::test_who_is_no_longer_invited_gets_the_money_back[sqlite]",
    ),
    Mutant(
        name="Who bought early cannot pay late before the others begin",
        trap="ours",
        path="engine/door/late_guests.py",
        edits={"return max(0, sale.round.begins_ms - order.created_ms) if audience.early else 0": "return 0"},
        caught_by=f"{_LATE}::test_who_bought_early_may_pay_late_before_the_others_begin[sqlite]",
    ),
    Mutant(
        name="A refusal tells of a sell-out that is over",
        trap="ours",
        path="web/claims/sold_out_reply.py",
        edits={"form is None or form.facts != facts or form.sale": "form is None or form.sale"},
        caught_by="tests/api/test_why_not.py::test_when_units_come_back_and_go_again_the_last_one_counts",
    ),
    Mutant(
        name="Who comes too late is sent to a line in which nothing can come",
        trap="ours",
        path="web/claims/sold_out_reply.py",
        edits={"    if unpaid == 0:": "    if unpaid == 0 and not sale.door.line.waiting_list:"},
        caught_by="tests/api/test_why_not.py::test_a_refusal_says_what_is_left_to_do",
    ),
    Mutant(
        name="An audience that came out empty lets everybody in",
        trap="ours",
        path="web/sales/door_of_sale.py",
        edits={"    if not (given.groups or given.early or given.list_):": "    if False:"},
        caught_by="tests/api/test_audience.py::test_an_operator_changes_the_audience_and_takes_it_away",
    ),
)
