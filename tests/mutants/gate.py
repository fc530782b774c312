"""Flaws of the gate: its scripts, its keys, and what is made of their answers."""

from tests.mutants.mutant import Mutant

ADMIT = "backends/redis/lua/admit.lua"
RELEASE = "backends/redis/lua/release.lua"
OPEN = "backends/redis/lua/open_round.lua"
UPDATE = "backends/redis/lua/update_round.lua"
REBUILD = "backends/redis/lua/rebuild.lua"

MUTANTS = (
    Mutant(
        name="A worker gets orders that no replica has",
        trap="ours",
        path="backends/redis/streams.py",
        edits={"            if found:\n                await self._replicated(client, lanes[0])\n": ""},
        caught_by="tests/cluster/test_silent_replica.py::test_no_worker_gets_an_order_that_no_replica_has[sentinel-waits]",
    ),
    Mutant(
        name="A round that is not there is sold out",
        trap="F3",
        path=ADMIT,
        edits={"and 'not_ready' or 'invalid'": "and 'sold_out' or 'invalid'"},
        caught_by="tests/backends/gate/test_admit.py::test_a_round_that_is_not_there_is_not_ready_and_nothing_is_written[valkey]",
    ),
    Mutant(
        name="A round that is only being prepared sells",
        trap="F44",
        path=ADMIT,
        edits={"if not status or status == 'preparing' or": "if not status or"},
        caught_by="tests/backends/gate/test_admit.py::test_a_round_that_was_only_created_admits_nobody[valkey]",
    ),
    Mutant(
        name="A round that has lost the records of its buyers sells",
        trap="ours",
        path=ADMIT,
        edits={"  return known_buyers >= tonumber(": "  return 0 <= tonumber("},
        caught_by="tests/backends/gate/test_lost_parts.py::test_without_records_of_its_buyers_nothing_is_decided[valkey-one]",
    ),
    Mutant(
        name="A round of an earlier version is taken for lost",
        trap="ours",
        path=ADMIT,
        edits={"tonumber(round[11] or round[6] ~= '0' and 1 or 0)": "tonumber(round[11] or 1000)"},
        caught_by="tests/backends/gate/test_lost_parts.py::test_a_round_of_an_earlier_version_sells_on_and_is_counted_from_then_on[valkey]",
    ),
    Mutant(
        name="A round that has lost what it knew of orders that are over sells",
        trap="ours",
        path=ADMIT,
        edits={"redis.call('HLEN', KEYS[5]) >= tonumber(round[12] or '0')": "true"},
        caught_by="tests/backends/gate/test_lost_parts.py::test_without_what_is_known_of_orders_that_are_over_nothing_is_decided[valkey]",
    ),
    Mutant(
        name="A round that has lost a field sells",
        trap="F2",
        path=ADMIT,
        edits={"    if not round[i] then return false end\n": ""},
        caught_by="tests/backends/gate/test_lost_parts.py::test_without_a_field_of_the_round_nothing_is_decided[valkey-version]",
    ),
    Mutant(
        name="A lost counter begins again in the same second",
        trap="F22",
        path=ADMIT,
        edits={"  if counted then return true end\n": "  if true then return true end\n"},
        caught_by="tests/backends/gate/test_lost_parts.py::test_a_lost_counter_gives_out_no_number_twice[valkey-hash]",
    ),
    Mutant(
        name="An order whose record is gone counts as released",
        trap="F63",
        path=RELEASE,
        edits={"if round[2] == 'preparing' or not is_whole then": "if round[2] == 'preparing' then"},
        caught_by="tests/backends/gate/test_lost_parts.py::test_without_records_of_its_buyers_nothing_is_decided[valkey-all]",
    ),
    Mutant(
        name="A rebuild does not count the buyers",
        trap="ours",
        path=REBUILD,
        edits={
            "  redis.call('HINCRBY', KEYS[1], 'buyers', redis.call('HSET', KEYS[2], unpack(ARGV, 4, last)))": "  redis.call('HSET', KEYS[2], unpack(ARGV, 4, last))"
        },
        caught_by="tests/backends/gate/test_lost_parts.py::test_records_are_counted_by_a_rebuild[valkey]",
    ),
    Mutant(
        name="The script does not look when the sale begins",
        trap="F5",
        path=ADMIT,
        edits={"  if now_ms < begins_ms then return 'not_started' end\n": ""},
        caught_by="tests/backends/gate/test_admit.py::test_the_window_is_the_servers[valkey]",
    ),
    Mutant(
        name="The script does not look when the sale ends",
        trap="F5",
        path=ADMIT,
        edits={"if now_ms >= ends_ms or status == 'closed'": "if status == 'closed'"},
        caught_by="tests/backends/gate/test_admit.py::test_the_window_is_the_servers[valkey]",
    ),
    Mutant(
        name="A paused sale sells",
        trap="F5",
        path=ADMIT,
        edits={"  if status == 'paused' then return 'paused' end\n": ""},
        caught_by="tests/backends/gate/test_admit.py::test_refusals_come_in_the_order_of_precedence[valkey]",
    ),
    Mutant(
        name="Units are written off before the queue entry that may fail",
        trap="F7",
        path=ADMIT,
        edits={
            "local backlog = redis.call('XLEN', KEYS[3])": "local backlog = 0",
            "  for i = 1, #entries do\n": "  redis.call('HSET', KEYS[1], 'available', available)\n"
            "  for i = 1, #entries do\n",
        },
        caught_by="tests/backends/gate/test_lua.py::test_a_key_of_the_wrong_type_leaves_everything_as_it_was[valkey-orders]",
    ),
    Mutant(
        name="Stock is looked at before the buyer's own orders",
        trap="F8",
        path=ADMIT,
        edits={
            "local refused = not known and (": "local refused = available < quantity and 'sold_out' or not known and (",
            "    if known then\n": "    if known and not refused then\n",
        },
        caught_by="tests/backends/gate/test_admit.py::test_a_repeat_gets_its_order_also_when_sold_out[valkey]",
    ),
    Mutant(
        name="A repeated key is not recognised",
        trap="F9",
        path=ADMIT,
        edits={"if request_id ~= '' and id == request_id then": "if false then"},
        caught_by="tests/backends/gate/test_faults.py::test_a_claim_whose_answer_is_lost_is_repeated_and_counts_once[valkey]",
    ),
    Mutant(
        name="A key is forgotten as soon as its order is over",
        trap="F9",
        path=ADMIT,
        edits={
            "if request_id ~= '' and id == request_id then": "if alive == '1' and request_id ~= '' and id == request_id then"
        },
        caught_by="tests/backends/gate/test_release.py::test_a_key_is_remembered_after_its_order_is_over[valkey]",
    ),
    Mutant(
        name="A winner gets no queue entry",
        trap="F10",
        path=ADMIT,
        edits={
            "    redis.call('XADD', KEYS[3], '*', 'order', entries[i])": "    if i % 3 > 0 then redis.call('XADD', KEYS[3], "
            "'*', 'order', entries[i]) end"
        },
        caught_by="tests/backends/gate/test_admit.py::test_twenty_thousand_winners_have_as_many_numbers[valkey]",
    ),
    Mutant(
        name="The stream is cut to a length, read or not",
        trap="F41",
        path=ADMIT,
        edits={"'XADD', KEYS[3], '*'": "'XADD', KEYS[3], 'MAXLEN', 2, '*'"},
        caught_by="tests/backends/transport/test_deliveries.py::test_what_was_admitted_before_the_first_worker_came_is_delivered[valkey]",
    ),
    Mutant(
        name="The backlog has no bound",
        trap="F12",
        path=ADMIT,
        edits={"if backlog >= backlog_max or counter": "if counter"},
        caught_by="tests/backends/gate/test_admit.py::test_the_backlog_cap_refuses_before_anything_is_deducted[valkey]",
    ),
    Mutant(
        name="The counter of the day is not kept: two winners get one number",
        trap="F22",
        path=ADMIT,
        edits={"  redis.call('HSET', KEYS[4], today, counter)\n": ""},
        caught_by="tests/backends/gate/test_admit.py::test_twenty_thousand_winners_have_as_many_numbers[valkey]",
    ),
    Mutant(
        name="The counter of the day outgrows its 24 bits",
        trap="F22",
        path=ADMIT,
        edits={" or counter >= COUNTER_MAX then": " then"},
        caught_by="tests/backends/gate/test_lua.py::test_the_days_counter_stops_at_its_24_bits[valkey]",
    ),
    Mutant(
        name="Old days are kept for ever",
        trap="F23",
        path=ADMIT,
        edits={"if day < oldest then": "if false then"},
        caught_by="tests/backends/gate/test_lua.py::test_days_are_kept_for_forty_days_and_named_by_the_utc_date[valkey]",
    ),
    Mutant(
        name="Stock is not checked",
        trap="F47",
        path=ADMIT,
        edits={"  if available < quantity then return 'sold_out' end\n": ""},
        caught_by="tests/backends/gate/test_admit.py::test_many_at_once_sell_exactly_the_stock[valkey-3-1-50]",
    ),
    Mutant(
        name="The last unit is never sold",
        trap="F48",
        path=ADMIT,
        edits={"if available < quantity then": "if available <= quantity then"},
        caught_by="tests/backends/gate/test_admit.py::test_the_last_unit_is_sold_and_not_one_more[valkey-1]",
    ),
    Mutant(
        name="The limit per buyer is not checked",
        trap="F49",
        path=ADMIT,
        edits={"if units + quantity > limit then": "if false then"},
        caught_by="tests/backends/gate/test_admit.py::test_many_at_once_sell_exactly_the_stock[valkey-3-2-50]",
    ),
    Mutant(
        name="Within a batch, a buyer's earlier claims are not seen",
        trap="F49",
        path=ADMIT,
        edits={"      record_of[user] = record\n": ""},
        caught_by="tests/backends/gate/test_admit.py::test_a_repeat_within_one_batch_gets_the_same_order[valkey]",
    ),
    Mutant(
        name="The script takes any quantity",
        trap="F60",
        path=ADMIT,
        edits={" and quantity >= 1 and quantity <= QUANTITY_MAX": ""},
        caught_by="tests/backends/gate/test_lua.py::test_the_script_itself_refuses_a_bad_quantity[valkey-0]",
    ),
    Mutant(
        name="The script takes fractions of a unit",
        trap="F60",
        path=ADMIT,
        edits={" and quantity % 1 == 0": ""},
        caught_by="tests/backends/gate/test_lua.py::test_the_script_itself_refuses_a_bad_quantity[valkey-1.5]",
    ),
    Mutant(
        name="The order number goes through a double",
        trap="F74",
        path="domain/order_number.py",
        edits={
            "return (self.seconds << 32) | (self.lane << 24) | self.counter": "return int(self.seconds * 2.0**32 + "
            "self.lane * 2.0**24 + self.counter)"
        },
        caught_by="tests/backends/gate/test_admit.py::test_twenty_thousand_winners_have_as_many_numbers[valkey]",
    ),
    Mutant(
        name="All rounds share one hash of buyers",
        trap="F68",
        path="backends/redis/keys.py",
        edits={'}}}:buyers:{ref.id}"': '}}}:buyers"'},
        caught_by="tests/backends/gate/test_rounds.py::test_rounds_of_one_lane_share_nothing[valkey]",
    ),
    Mutant(
        name="All rounds share one stock",
        trap="F67",
        path="backends/redis/keys.py",
        edits={'}}}:round:{ref.id}"': '}}}:round"'},
        caught_by="tests/backends/gate/test_rounds.py::test_rounds_of_one_lane_share_nothing[valkey]",
    ),
    Mutant(
        name="A release does not ask whether it was done before",
        trap="F62",
        path=RELEASE,
        edits={"          held = string.sub(held, 1, -2) .. '0'\n": ""},
        caught_by="tests/backends/gate/test_release.py::test_a_hundred_calls_give_back_once[valkey]",
    ),
    Mutant(
        name="An order that is over stays in the buyer's record",
        trap="ours",
        path=RELEASE,
        edits={
            "if string.sub(held, -1) == '1' then live[#live + 1] = held else over[#over + 1] = held end": (
                "live[#live + 1] = held"
            )
        },
        caught_by="tests/backends/gate/test_past.py::test_a_record_stays_short_however_often_its_buyer_cancels",
    ),
    Mutant(
        name="The script forgets a key when its order is over",
        trap="F9",
        path=ADMIT,
        edits={"known = request_id ~= '' and look_back(user, request_id)": "known = nil"},
        caught_by="tests/backends/gate/test_release.py::test_a_key_is_remembered_after_its_order_is_over[valkey]",
    ),
    Mutant(
        name="Who lets orders lapse may take the unit again at once",
        trap="S18",
        path=ADMIT,
        edits={"now_ms < again_ms and 'cooling_down' or refusal(units, quantity)": "refusal(units, quantity)"},
        caught_by="tests/api/test_hoarding.py::test_after_a_lapse_another_buyer_gets_the_unit",
    ),
    Mutant(
        name="The wait after a lapse does not grow",
        trap="S18",
        path=ADMIT,
        edits={"cool_down_s * 2 ^ math.min(lapses - 1, DOUBLINGS_MAX)": "cool_down_s"},
        caught_by="tests/backends/gate/test_cool_down.py::test_each_lapse_doubles_the_wait_up_to_an_hour",
    ),
    Mutant(
        name="A failure of ours makes the buyer wait",
        trap="S18",
        path=RELEASE,
        edits={"ARGV[5 * i] == '1'": "true"},
        caught_by="tests/backends/gate/test_cool_down.py::test_a_failure_of_ours_makes_nobody_wait[valkey]",
    ),
    Mutant(
        name="Money that came late has to wait as well",
        trap="S18",
        path=ADMIT,
        edits={" or string.sub(request_id, 1, 5) == 'late-' then": " then"},
        caught_by="tests/backends/gate/test_cool_down.py::test_money_that_came_late_does_not_wait[valkey]",
    ),
    Mutant(
        name="A rebuilt gate has forgotten who has to wait",
        trap="S18",
        path="backends/sql/ledger.py",
        edits={"        lapsed_ms=row.lapsed_ms or 0,\n": ""},
        caught_by="tests/api/test_cool_down.py::test_the_wait_survives_a_gate_that_lost_everything",
    ),
    Mutant(
        name="Who has to wait in a round that is over has to wait in the next as well",
        trap="S18",
        path="domain/outcome.py",
        edits={
            'please wait before you buy again.",\n        of_round=True,\n': 'please wait before you buy again.",\n',
        },
        caught_by="tests/api/test_cool_down.py::test_the_next_round_begins_without_a_wait",
    ),
    Mutant(
        name="The alarm about orders that lapse rings all the time",
        trap="S18",
        path="engine/orders/lapse_share.py",
        edits={"                self._told.add(round_.id)\n": ""},
        caught_by="tests/api/test_lapses.py::test_an_alarm_once_for_each_round_when_many_orders_lapse",
    ),
    Mutant(
        name="A rebuild forgets the keys of orders that are over",
        trap="F9",
        path="backends/redis/gate.py",
        edits={"len(holdings), *records, *over)": "len(holdings), *records)"},
        caught_by="tests/backends/gate/test_rebuild.py::test_a_rebuilt_round_has_the_ledgers_orders_and_nothing_else[valkey]",
    ),
    Mutant(
        name="A release of an unknown order gives back a unit",
        trap="F63",
        path=RELEASE,
        edits={
            "  reply[i + 1] = result\n": "  if result == 'unknown' then units = units + 1 end\n  reply[i + 1] = result\n",
        },
        caught_by="tests/backends/gate/test_release.py::test_what_was_never_taken_is_not_given_back[valkey]",
    ),
    Mutant(
        name="Units come back before the gate knows of the round",
        trap="F51",
        path=RELEASE,
        edits={"epoch < decided and 'not_yet' or 'unknown'": "'unknown'"},
        caught_by="tests/backends/gate/test_release.py::test_a_release_of_a_newer_epoch_waits[valkey]",
    ),
    Mutant(
        name="Returned units are not counted",
        trap="F50",
        path=RELEASE,
        edits={"  redis.call('HINCRBY', KEYS[1], 'released', units)\n": ""},
        caught_by="tests/backends/gate/test_release.py::test_a_released_unit_is_on_sale_again[valkey]",
    ),
    Mutant(
        name="Returned units do not change the version that flags stand for",
        trap="F46",
        path=RELEASE,
        edits={"redis.call('HINCRBY', KEYS[1], 'version', 1)": "round[3]"},
        caught_by="tests/backends/gate/test_release.py::test_a_released_unit_is_on_sale_again[valkey]",
    ),
    Mutant(
        name="A second opening fills the stock again",
        trap="F69",
        path=OPEN,
        edits={"if round[1] then return": "if false then return"},
        caught_by="tests/backends/gate/test_rounds.py::test_a_second_opening_changes_nothing[valkey]",
    ),
    Mutant(
        name="A gate that has lost half a round is filled again",
        trap="F3",
        path=OPEN,
        edits={"if redis.call('EXISTS', KEYS[2], KEYS[3]) > 0 then": "if false then"},
        caught_by="tests/backends/gate/test_lua.py::test_buyers_without_their_round_are_not_sold_to_again[valkey]",
    ),
    Mutant(
        name="A change by an operator sets the stock anew",
        trap="F44",
        path=UPDATE,
        edits={
            "redis.call('HINCRBY', KEYS[1], 'available', added)": "redis.call('HSET', KEYS[1], 'available', ARGV[7])"
        },
        caught_by="tests/backends/gate/test_rounds.py::test_units_are_added_to_what_is_left[valkey]",
    ),
    Mutant(
        name="A late change goes back to older rules",
        trap="F69",
        path=UPDATE,
        edits={"if tonumber(ARGV[2]) <= tonumber(round[2]) then return 'current' end\n": ""},
        caught_by="tests/backends/gate/test_rounds.py::test_an_update_applies_once_and_never_backwards[valkey]",
    ),
    Mutant(
        name="A slow keeper opens a gate that forgot, with full stock",
        trap="F51",
        path=UPDATE,
        edits={"if round[4] ~= ARGV[8] then return 'other_opening' end\n": ""},
        caught_by="tests/api/test_keeper.py::test_a_slow_opener_cannot_fill_a_gate_that_forgot",
    ),
    Mutant(
        name="A rebuilt round has its full stock again",
        trap="F51",
        path=REBUILD,
        edits={"'available', total - admitted + released": "'available', total"},
        caught_by="tests/backends/gate/test_rebuild.py::test_a_rebuilt_round_has_the_ledgers_orders_and_nothing_else[valkey]",
    ),
    Mutant(
        name="Two keepers mix what they read for a rebuild",
        trap="F69",
        path=REBUILD,
        edits={"if round[2] ~= 'preparing' or round[3] ~= ARGV[2] then": "if round[2] ~= 'preparing' then"},
        caught_by="tests/backends/gate/test_rebuild.py::test_every_beginning_makes_the_earlier_ones_void[valkey]",
    ),
    Mutant(
        name="A rebuilt gate gives out the numbers of the same second again",
        trap="F22",
        path=REBUILD,
        edits={"if tonumber(time[1]) <= tonumber(round[5]) then": "if false then"},
        caught_by="tests/backends/gate/test_rebuild.py::test_numbers_of_the_second_of_the_loss_are_never_given_out_again[valkey]",
    ),
    Mutant(
        name="A server that was started again is taken for the one that it was",
        trap="F72",
        path="backends/redis/server_watch.py",
        edits={" or not line.connection.looked_at or ": " or "},
        caught_by="tests/cluster/test_server_watch.py::"
        "test_a_server_that_comes_back_without_its_file_sells_nothing[looks at new connections only]",
    ),
    Mutant(
        name="A server whose settings are changed while it runs is not looked at",
        trap="F72",
        path="web/app.py",
        edits={'                repeat("servers", engine.gate.watch_servers, stop, SERVERS_EVERY_S),\n': ""},
        caught_by="tests/cluster/test_server_watch.py::test_a_replica_that_could_not_keep_orders_closes_its_primary[cluster]",
    ),
    Mutant(
        name="A file that is only being written counts as one that is there",
        trap="F72",
        path="backends/redis/server_watch.py",
        edits={"own = known.own if known.own and rewriting and not fault else fault": "own = fault"},
        caught_by="tests/cluster/test_server_watch.py::test_a_file_that_is_switched_on_counts_when_it_is_whole",
    ),
    Mutant(
        name="Replicas may be as they like",
        trap="F72",
        path="backends/redis/suitability.py",
        edits={"if replica is not None and _may_take_over(replica):": "if False:"},
        caught_by="tests/cluster/test_server_watch.py::"
        "test_a_replica_that_could_not_keep_orders_closes_its_primary[sentinel]",
    ),
    Mutant(
        name="A server that has gone back to before a rebuild sells",
        trap="ours",
        path=ADMIT,
        edits={"  if tonumber(round[8]) < tonumber(ARGV[5]) then return false end\n": ""},
        caught_by="tests/backends/gate/test_lua.py::test_a_server_that_has_gone_back_to_before_a_rebuild_admits_nobody[valkey]",
    ),
    Mutant(
        name="A server that takes over again is taken for the one that was vouched for",
        trap="ours",
        path="backends/redis/gate.py",
        edits={
            """reign = f"{line.server.name} {parse_info(info).get('master_replid', '')}\"""": "reign = line.server.name"
        },
        caught_by="tests/cluster/test_silent_replica.py::"
        "test_units_that_came_back_are_on_sale_after_all[cluster-there and back]",
    ),
    Mutant(
        name="A round that is over stays half rebuilt",
        trap="ours",
        path="engine/rounds/losses.py",
        edits={"if await self._gate.inspect(round_.ref) is not None and (found": "if False and (found"},
        caught_by="tests/api/test_rebuild.py::test_a_round_that_is_over_is_not_left_half_rebuilt[fenced]",
    ),
    Mutant(
        name="A repeat is answered without a word from a replica",
        trap="ours",
        path="backends/redis/gate.py",
        edits={
            "                self._require(*await line.send(self._write_and_wait(lane)))\n            self._require": "                pass\n            self._require"
        },
        caught_by="tests/cluster/test_silent_replica.py::test_nobody_is_told_of_an_order_that_no_replica_has[cluster]",
        also=("tests/cluster/test_silent_replica.py::test_nobody_is_told_of_an_order_that_no_replica_has[sentinel]",),
    ),
    Mutant(
        name="The list shows orders that no replica has",
        trap="ours",
        path="engine/orders/tracking.py",
        edits={
            "for order in wanted if order.number not in written}, standing)": "for order in wanted if order.number in written}, standing)"
        },
        caught_by="tests/cluster/test_silent_replica.py::test_nobody_is_told_of_an_order_that_no_replica_has[cluster]",
    ),
    Mutant(
        name="Units are got that a failover gives back to their sender",
        trap="ours",
        path="engine/rounds/shared_gate.py",
        edits={"            await self._gate.assure([origin], standing)": "            pass"},
        caught_by="tests/cluster/test_silent_replica.py::"
        "test_units_are_not_got_before_a_replica_knows_that_they_were_sent",
    ),
    Mutant(
        name="A server that takes over sells the round as it was before its rebuild",
        trap="ours",
        path=REBUILD,
        edits={"if not round[1] or tonumber(round[1]) > tonumber(ARGV[2]) then": "if round[1] ~= ARGV[2] then"},
        caught_by="tests/backends/gate/test_rebuild.py::"
        "test_a_later_epochs_fence_closes_a_round_that_went_back_in_time[valkey]",
    ),
    Mutant(
        name="A round that is fenced can be opened by an update",
        trap="F51",
        path=REBUILD,
        edits={"'status', 'preparing', 'opened_ms', 0) -- no": "'status', 'preparing') -- no"},
        caught_by="tests/backends/gate/test_rebuild.py::test_a_fenced_round_admits_nobody_and_no_update_opens_it[valkey]",
    ),
    Mutant(
        name="A server that may evict keys is good enough",
        trap="F71",
        path="backends/redis/suitability.py",
        edits={'if policy != "noeviction":': 'if policy == "":'},
        caught_by="tests/e2e/test_up.py::test_a_redis_that_evicts_is_refused",
    ),
    Mutant(
        name="A server that may lose its last second is strict enough",
        trap="F72",
        path="backends/redis/suitability.py",
        edits={'if durability != "strict":': "if True:"},
        caught_by="tests/e2e/test_up.py::test_a_redis_that_is_not_strict_is_refused",
    ),
    Mutant(
        name="A gift between lanes that is repeated gives twice",
        trap="F53",
        path="backends/redis/lua/give.lua",
        edits={"if sent ~= tonumber(ARGV[3]) or units <= 0 then": "if units <= 0 then"},
        caught_by="tests/backends/gate/test_shares.py::test_what_is_sent_is_got_once_however_often_and_in_whatever_order[valkey]",
    ),
    Mutant(
        name="A gift between lanes is taken as often as it is brought",
        trap="F62",
        path="backends/redis/lua/take.lua",
        edits={"tonumber(ARGV[3]) - tonumber(round[5] or '0')": "tonumber(ARGV[3])"},
        caught_by="tests/backends/gate/test_shares.py::test_what_is_sent_is_got_once_however_often_and_in_whatever_order[valkey]",
    ),
    Mutant(
        name="A gift of an epoch that is over is taken",
        trap="F51",
        path="backends/redis/lua/take.lua",
        edits={"if round[1] ~= ARGV[1] or round[2] == 'preparing' then": "if round[2] == 'preparing' then"},
        caught_by="tests/backends/gate/test_shares.py::test_nothing_is_sent_or_got_in_another_epoch_or_while_nobody_is_admitted[valkey]",
    ),
    Mutant(
        name="The embedded server syncs its file once a second",
        trap="F72",
        path="local/valkey.py",
        edits={'"always" if self._durability == "strict" else "everysec"': '"everysec"'},
        caught_by="tests/local/test_valkey.py::test_it_runs_with_the_promised_options[strict-always]",
    ),
)
