"""Flaws of the API's front: connections, tokens, addresses, what strangers learn."""

from tests.mutants.mutant import Mutant

MUTANTS = (
    Mutant(
        name="A client that guesses at the admin key need not wait",
        trap="ours",
        path="web/context.py",
        edits={"        if wait_s := self.guesses.wait_s(client):\n": "        if wait_s := 0:\n"},
        caught_by="tests/api/test_incidents.py::test_a_client_that_guesses_at_the_admin_key_has_to_wait_and_operators_elsewhere_do_not",
    ),
    Mutant(
        name="A flood of refusals is a flood of lines",
        trap="ours",
        path="web/incidents.py",
        edits={"        if untold is None:\n": "        if True:\n"},
        caught_by="tests/api/test_incidents.py::test_a_flood_is_a_few_lines",
    ),
    Mutant(
        name="A forged token leaves no trace",
        trap="ours",
        path="web/claim_protocol.py",
        edits={"            self._claims.note(error, self.peer(), said)\n": ""},
        caught_by="tests/api/test_incidents.py::test_each_kind_is_counted_and_told",
    ),
    Mutant(
        name="The name that a proxy gave a request is lost",
        trap="ours",
        path="web/claim_protocol.py",
        edits={"request_id(headers.get(HEADER))": "request_id()"},
        caught_by="tests/api/test_envelope.py::test_the_answer_to_a_claim_has_the_name_of_its_request[plain]",
    ),
    Mutant(
        name="What was told already is told again",
        trap="ours",
        path="engine/claims/lasting_states.py",
        edits={"        if on == (subject in self._told):\n": "        if False:\n"},
        caught_by="tests/engine/claims/test_lasting_states.py::test_a_state_that_flickers_is_told_once_when_it_lasts",
    ),
    Mutant(
        name="An address has a second spelling",
        trap="ours",
        path="web/canonical_path.py",
        edits={"return _OTHERWISE.search(raw_path) is None": "return True"},
        caught_by="tests/api/test_envelope.py::test_every_address_has_one_spelling",
        also=("tests/api/test_envelope.py::test_a_claim_has_one_address_too[parsed]",),
    ),
    Mutant(
        name="A trailing slash leads to the host of a header",
        trap="ours",
        path="web/app.py",
        edits={"    app.router.redirect_slashes = False\n": ""},
        caught_by="tests/api/test_envelope.py::test_no_redirect_names_a_host",
    ),
    Mutant(
        name="Errors may be kept by caches on the way",
        trap="ours",
        path="web/envelope.py",
        edits={"        missing.append(_NO_STORE)\n": "        pass\n"},
        caught_by="tests/api/test_envelope.py::test_what_every_answer_says_about_itself",
    ),
    Mutant(
        name="Strangers read the figures",
        trap="ours",
        path="settings/table.py",
        edits={
            '    metrics: Literal["public", "operator"] = field(\n        default="operator",': '    metrics: Literal["public", "operator"] = field(\n        default="public",'
        },
        caught_by="tests/api/test_orders.py::test_figures_are_for_operators_unless_all_may_see_them",
    ),
    Mutant(
        name="Figures are put together anew for each reader",
        trap="ours",
        path="telemetry.py",
        edits={"            if known is None:\n": "            if True:\n"},
        caught_by="tests/api/test_orders.py::test_figures_are_put_together_once_a_second_however_many_ask",
    ),
    Mutant(
        name="One connection is let in for each turn of the event loop",
        trap="ours",
        path="web/acceptor.py",
        edits={"ACCEPTED_PER_TURN_MAX = 1000": "ACCEPTED_PER_TURN_MAX = 1"},
        caught_by="tests/web/test_acceptor.py::test_all_waiting_clients_are_let_in_within_a_few_turns[uvloop]",
    ),
    Mutant(
        name="A client that comes when it is full is cut off without a word",
        trap="ours",
        path="web/acceptor.py",
        edits={
            "            connection.send(refusal.answer(self._default_headers()))\n            connection.shutdown(socket.SHUT_WR)\n": "            connection.close()\n"
        },
        caught_by="tests/web/test_acceptor.py::test_who_comes_when_it_is_full_is_told_so_whatever_they_have_sent[429-room0-uvloop]",
    ),
    Mutant(
        name="One address may have all the connections",
        trap="ours",
        path="web/connection_places.py",
        edits={"if prefix and self._taken[prefix] >= self.room.per_address:": "if False:"},
        caught_by="tests/e2e/test_connections.py::test_idle_connections_of_one_address_starve_nobody",
    ),
    Mutant(
        name="A socket's place is never given back",
        trap="ours",
        path="web/uvicorn_adapter.py",
        edits={"        self.transport.get_protocol().leave = self.leave  # type: ignore[attr-defined]\n": ""},
        caught_by="tests/api/test_connection_places.py::test_a_place_is_kept_through_an_upgrade_and_given_back_at_the_end",
    ),
    Mutant(
        name="One buyer may wait in any number of long polls",
        trap="ours",
        path="web/orders.py",
        edits={"        with ctx.seats.taken_by(user):\n": "        if True:\n"},
        caught_by="tests/api/test_connection_places.py::test_one_buyer_waits_for_so_much_and_no_more[long polls]",
    ),
    Mutant(
        name="A client that is gone keeps a seat for the rest of the long poll",
        trap="ours",
        path="engine/orders/tracking.py",
        edits={"                await gone()\n": "                await stays()\n"},
        caught_by="tests/api/test_connection_places.py::test_clients_that_vanish_give_their_places_back",
    ),
    Mutant(
        name="Any client may say whose request it is",
        trap="ours",
        path="web/client_address.py",
        edits={"        if not self.trusts(peer):\n            return peer\n": ""},
        caught_by="tests/web/test_client_address.py::test_without_proxies_nobody_does",
    ),
    Mutant(
        name="A request behind an upgrade that is not done gets no answer",
        trap="ours",
        path="web/uvicorn_adapter.py",
        edits={"rest = data[upgrade.args[0] :]": 'rest = b""'},
        caught_by="tests/web/test_guard_lets_pass.py::test_what_follows_an_upgrade_that_is_not_done_is_the_next_request[uvloop]",
    ),
    Mutant(
        name="A deeply nested token is an error of ours",
        trap="ours",
        path="web/signed_tokens.py",
        edits={
            "except (ValueError, msgspec.MsgspecError, RecursionError):": "except (ValueError, msgspec.MsgspecError):"
        },
        caught_by="tests/web/test_auth.py::test_a_token_of_any_depth_gets_an_answer[claims-[]-1000]",
    ),
    Mutant(
        name="A token that is meant for nobody is taken for one without an audience",
        trap="ours",
        path="web/auth.py",
        edits={"if self._audience is None and decoded": "if False and decoded"},
        caught_by="tests/web/test_auth.py::test_an_audience_that_is_not_ours_is_refused[none-audience0]",
    ),
    Mutant(
        name="Secrets that stand in every list of guesses are accepted",
        trap="S5",
        path="settings/kinds.py",
        edits={" or bits(text) < bits_min:": ":"},
        caught_by="tests/test_settings.py::test_a_bad_admin_key_is_refused[administrator1234]",
    ),
)
