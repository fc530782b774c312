"""Flaws of limits that several share, of the check of a draw, of chances and of stories."""

from tests.mutants.mutant import Mutant

_GATE = "tests/backends/gate/test_shared_limits.py"
_API = "tests/api/test_shared_limits.py"
_AUDIT = "tests/audit/test_shared_limits.py"
_VERIFY = "tests/cli/test_verify_draw.py"
_ADMIT = "backends/redis/lua/admit.lua"

MUTANTS = (
    Mutant(
        name="What others of the same person have bought does not count",
        trap="ours",
        path=_ADMIT,
        edits={"      units = units + units_in(record_of[other])\n": ""},
        caught_by=f"{_GATE}::test_users_of_one_person_share_the_limit[valkey]",
    ),
    Mutant(
        name="A round that shares its limit counts only what it has sold itself",
        trap="ours",
        path=_ADMIT,
        edits={"    units = units + units_in(redis.call('HGET', sibling.buyers, user))\n": ""},
        caught_by=f"{_GATE}::test_rounds_share_the_limit_both_ways[valkey]",
    ),
    Mutant(
        name="The later of two rounds does not tell the earlier that it shares the limit",
        trap="ours",
        path=_ADMIT,
        edits={
            "      redis.call('HSET', sibling.key, 'siblings', (string.gsub(sibling.siblings .. ' ' .. round[9], '^ ', '')))\n": ""
        },
        caught_by=f"{_GATE}::test_rounds_share_the_limit_both_ways[valkey]",
    ),
    Mutant(
        name="A round sells on while one that shares its limit is lost",
        trap="ours",
        path=_ADMIT,
        edits={
            "redis.call('HLEN', sibling.buyers) < known then return false end": "false then return false end",
            "    if not OPENED[found[1] or ''] or not known or": "    if",
        },
        caught_by=f"{_GATE}::test_while_a_sibling_is_lost_nothing_is_decided[valkey-forgotten]",
    ),
    Mutant(
        name="A rebuilt round has forgotten who is one person",
        trap="ours",
        path="backends/redis/lua/rebuild.lua",
        edits={"  for person = i + 1, #ARGV, 2 do add_person(ARGV[person], ARGV[person + 1]) end\n": ""},
        caught_by=f"{_GATE}::test_a_rebuilt_round_knows_persons_and_siblings[valkey]",
    ),
    Mutant(
        name="The ledger does not note whom an order was counted as",
        trap="ours",
        path="backends/sql/record_orders.py",
        edits={"        await connection.execute(_NOTE_PERSON, persons)\n": "        pass\n"},
        caught_by=f"{_API}::test_a_gate_that_forgot_counts_as_before",
    ),
    Mutant(
        name="Sales that share a limit are in different lanes",
        trap="ours",
        path="backends/sql/limit_groups.py",
        edits={"    return lane_of_group\n": "    return lane\n"},
        caught_by=f"{_API}::test_sales_of_a_group_share_one_limit",
    ),
    Mutant(
        name="A token without the claim counts as somebody new",
        trap="ours",
        path="web/buyers/token_person.py",
        edits={'        raise _unknown(claim, "is missing")\n': '        return ""\n'},
        caught_by=f"{_API}::test_a_token_without_the_claim_is_refused[bytes]",
    ),
    Mutant(
        name="The audit looks at each sale of a shared limit alone",
        trap="ours",
        path="audit/ledger.py",
        edits={
            "        if groups:\n            rows = await self.database.rows(select(rounds.c.id)": "        if False:\n            rows = await self.database.rows(select(rounds.c.id)"
        },
        caught_by=f"{_AUDIT}::test_a_person_with_too_much_in_several_sales_is_named[sqlite]",
    ),
    Mutant(
        name="The check of a draw believes the hash of the list",
        trap="ours",
        path="client/draw_check.py",
        edits={"    if sha256(joined.encode()).hexdigest() != draw.list_hash:": "    if False:"},
        caught_by=f"{_VERIFY}::test_what_was_done_to_a_draw_is_found_and_named[an entry was dropped]",
    ),
    Mutant(
        name="The check of a draw looks at the first places only",
        trap="ours",
        path="client/draw_check.py",
        edits={"        if digest < before:\n": "        if digest < before and place < 3:\n"},
        caught_by=f"{_VERIFY}::test_any_one_exchange_of_places_is_found",
    ),
    Mutant(
        name="The check of a draw believes the seed",
        trap="ours",
        path="client/draw_check.py",
        edits={"    if sha256(draw.seed.encode()).hexdigest() != draw.commitment:": "    if False:"},
        caught_by=f"{_VERIFY}::test_what_was_done_to_a_draw_is_found_and_named[the commitment is another]",
    ),
    Mutant(
        name="A chance is told as if everybody who is offered a unit paid",
        trap="ours",
        path="domain/line_estimate.py",
        edits={"    mean = (so_far.lapsed + 0.5) / (decided + 1)\n": "    mean = 0.5 / (decided + 1)\n"},
        caught_by="tests/domain/test_line_estimate.py::test_about_thirty_percent_of_those_told_thirty_percent_get_one[any rate]",
    ),
    Mutant(
        name="How a round goes is told while it goes on",
        trap="ours",
        path="engine/rounds/story.py",
        edits={"        if state not in (SaleState.SOLD_OUT, SaleState.ENDED):\n            return None\n": ""},
        caught_by="tests/api/test_story.py::test_it_tells_how_it_went_and_nobodys_name",
    ),
)
