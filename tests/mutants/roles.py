"""Flaws of the worker, the keeper and what lies between them and the gate."""

from tests.mutants.mutant import SIMULATION, Mutant

WORKER = "engine/orders/worker.py"
STREAMS = "backends/redis/streams.py"
AFTERLIFE = "engine/orders/releases.py"
OPENING = "engine/rounds/opening.py"
RECOVERY = "engine/rounds/rebuild_queue.py"
LOSSES = "engine/rounds/losses.py"
MISSING = "engine/orders/missing_orders.py"
FAILURES = "engine/orders/dead_letters.py"

MUTANTS = (
    Mutant(
        name="One slow client keeps all probes of a role waiting",
        trap="S20",
        path="operations/metrics_port.py",
        edits={"class _Server(ThreadingMixIn, HTTPServer):": "class _Server(HTTPServer):"},
        caught_by="tests/operations/test_metrics_port.py::test_a_slow_client_holds_up_no_probe_and_is_cut_off",
    ),
    Mutant(
        name="A client that goes on sending is never cut off from the figures",
        trap="S20",
        path="operations/metrics_port.py",
        edits={"        self._reading.start()\n": ""},
        caught_by="tests/operations/test_metrics_port.py::test_a_slow_client_holds_up_no_probe_and_is_cut_off",
    ),
    Mutant(
        name="An alarm that was redirected to a page counts as taken",
        trap="ours",
        path="http_call.py",
        edits={"    def redirect_request(self, *args: Any) -> None:\n        return None\n": "    pass\n"},
        caught_by="tests/engine/alarms/test_alarm.py::test_a_receiver_that_redirects_has_not_taken_it",
        also=("tests/test_http_call.py::test_no_redirect_is_followed[302]",),
    ),
    Mutant(
        name="An error that lasts is logged with every try",
        trap="ours",
        path="loops.py",
        edits={"                if told.is_news(error):": "                if True:"},
        caught_by="tests/test_loops.py::test_an_error_that_lasts_is_logged_once_and_so_is_its_end",
    ),
    Mutant(
        name="Entries are acknowledged before they are written",
        trap="F14",
        path=WORKER,
        edits={
            "        await self._write(readable, result)\n": "        await self._transport.settle(deliveries)\n"
            "        await self._write(readable, result)\n"
        },
        caught_by="tests/engine/orders/test_worker.py::test_a_database_that_is_away_is_waited_for",
        also=(SIMULATION,),
    ),
    Mutant(
        name="A database that is away is the order's fault",
        trap="F14",
        path=WORKER,
        edits={
            '                log.warning("the ledger is away, waiting", reason=str(error))\n': "                "
            "raise LedgerRefused(str(error)) from error\n"
        },
        caught_by="tests/engine/orders/test_worker.py::test_a_database_that_is_away_is_waited_for",
    ),
    Mutant(
        name="One bad order in a batch drops the others",
        trap="F42",
        path=WORKER,
        edits={"            if len(batch) == 1:\n": "            if len(batch) > 0:\n"},
        caught_by="tests/engine/orders/test_worker.py::test_one_bad_row_in_two_hundred_leaves_199",
    ),
    Mutant(
        name="An entry that cannot be read is dropped",
        trap="F43",
        path=WORKER,
        edits={
            "                await self._set_aside(result, delivery, delivery.problem, self._retry_delay_s)\n": "                result.done.append(delivery)\n"
        },
        caught_by="tests/engine/orders/test_worker.py::test_an_entry_that_cannot_be_read_holds_up_nobody",
    ),
    Mutant(
        name="The group begins with what comes after it",
        trap="F37",
        path=STREAMS,
        edits={'id="0", mkstream=True': 'id="$", mkstream=True'},
        caught_by="tests/backends/transport/test_deliveries.py::test_what_was_admitted_before_the_first_worker_came_is_delivered[valkey]",
    ),
    Mutant(
        name="A group that is gone is not made again",
        trap="F37",
        path=STREAMS,
        edits={'startswith(("NOGROUP", "UNBLOCKED"))': 'startswith("UNBLOCKED")'},
        caught_by="tests/backends/transport/test_streams.py::test_a_lost_group_is_made_again_and_nothing_is_missed[valkey-group]",
    ),
    Mutant(
        name="Entries are acknowledged to a group that does not exist",
        trap="F35",
        path="backends/redis/lua/settle.lua",
        edits={
            "redis.call('XACK', KEYS[1], ARGV[1], unpack(alone))": "redis.call('XACK', KEYS[1], 'worker', unpack(alone))"
        },
        caught_by="tests/backends/transport/test_deliveries.py::test_settled_entries_are_gone_and_the_counts_tell[valkey]",
    ),
    Mutant(
        name="Acknowledged entries stay in the stream",
        trap="F41",
        path="backends/redis/lua/settle.lua",
        edits={"redis.call('XDEL', KEYS[1], unpack(alone))": "redis.call('XLEN', KEYS[1])"},
        caught_by="tests/backends/transport/test_deliveries.py::test_settled_entries_are_gone_and_the_counts_tell[valkey]",
    ),
    Mutant(
        name="What a dead worker had is not taken over",
        trap="F39",
        path=STREAMS,
        edits={'self.consumer, idle_ms, "0-0"': 'self.consumer, 10**12, "0-0"'},
        caught_by="tests/backends/transport/test_deliveries.py::test_entries_of_a_silent_consumer_are_taken_over[valkey]",
    ),
    Mutant(
        name="All workers have the same name",
        trap="F38",
        path=STREAMS,
        edits={"self.consumer = own_name()": 'self.consumer = "worker"'},
        caught_by="tests/backends/transport/test_streams.py::test_consumers_have_names_of_their_own_and_do_not_pile_up[valkey]",
    ),
    Mutant(
        name="A consumer is deleted with what it holds",
        trap="F40",
        path="backends/redis/lua/retire_consumer.lua",
        edits={"if consumer.pending == 0 and consumer.idle": "if consumer.idle"},
        caught_by="tests/backends/transport/test_deliveries.py::test_consumers_that_hold_something_are_never_retired[valkey]",
    ),
    Mutant(
        name="The relay believes that everything was confirmed",
        trap="F61",
        path="engine/orders/broker_relay.py",
        edits={"await self._source.confirmed(confirmed)": "await self._source.confirmed(entries)"},
        caught_by="tests/backends/rabbitmq/test_faults.py::test_a_deleted_queue_is_made_again_and_what_it_held_is_published_again",
    ),
    Mutant(
        name="Releases count as done before the gate has them",
        trap="F53",
        path=AFTERLIFE,
        edits={
            "            done = await self._release([item": "            await self._ledger.outbox_done([item.id for item in items])\n"
            "            done = await self._release([item"
        },
        caught_by="tests/api/test_endings.py::test_a_round_that_the_gate_lost_holds_up_no_other",
    ),
    Mutant(
        name="Nodes are not told that units came back",
        trap="F45",
        path=AFTERLIFE,
        edits={"                await self._tell_nodes(ref, reply.version)\n": "                pass\n"},
        caught_by="tests/api/test_flags.py::test_an_announcement_withdraws_the_flag_without_a_question_to_the_gate",
    ),
    Mutant(
        name="Unpaid orders never expire",
        trap="F54",
        path=AFTERLIFE,
        edits={"expired = await self._ledger.expire_due(BATCH_MAX)": "expired = await self._ledger.expire_due(0)"},
        caught_by="tests/api/test_endings.py::test_expiry",
    ),
    Mutant(
        name="A round that takes nothing back holds up the others",
        trap="ours",
        path=AFTERLIFE,
        edits={"except GateUnavailable as error:  # perhaps": "except ZeroDivisionError as error:  # perhaps"},
        caught_by="tests/api/test_keeper.py::test_a_round_that_takes_nothing_back_holds_up_no_other",
    ),
    Mutant(
        name="A round that the gate refuses holds up the others",
        trap="ours",
        path=OPENING,
        edits={
            "            except GateUnavailable as error:\n                self._refused.tell(round_, error)\n            else:": "            "
            "except ZeroDivisionError:\n                pass\n            else:"
        },
        caught_by="tests/api/test_keeper.py::test_a_round_that_the_gate_refuses_holds_up_no_other",
    ),
    Mutant(
        name="A round that cannot be rebuilt holds up the others",
        trap="ours",
        path=RECOVERY,
        edits={
            "                except GateUnavailable as error:\n                    self._refused.tell(round_, error)": "                "
            "except ZeroDivisionError:\n                    pass"
        },
        caught_by="tests/api/test_keeper.py::test_a_round_that_cannot_be_rebuilt_holds_up_no_other",
    ),
    Mutant(
        name="Rounds that were lost together are rebuilt one after the other",
        trap="ours",
        path=RECOVERY,
        edits={"asyncio.Semaphore(REBUILT_AT_ONCE)": "asyncio.Semaphore(1)"},
        caught_by="tests/api/test_keeper.py::test_rounds_that_were_lost_together_do_not_wait_for_each_other",
    ),
    Mutant(
        name="A gate that went back in time is not noticed",
        trap="F51",
        path=LOSSES,
        edits={
            "went_back = pulse.admitted < least.admitted or released": "went_back = released",
        },
        caught_by="tests/api/test_rebuild.py::test_a_gate_that_went_back_in_time_is_noticed",
    ),
    Mutant(
        name="A gate that comes back in an epoch that is over is not noticed",
        trap="ours",
        path=LOSSES,
        edits={"if pulse.epoch != least.epoch or went_back": "if pulse.epoch != round_.epoch or went_back"},
        caught_by="tests/api/test_rebuild.py::test_a_gate_that_comes_back_while_it_is_being_rebuilt_is_noticed",
    ),
    Mutant(
        name="A gate that went back behind what an operator changed is not noticed",
        trap="ours",
        path=LOSSES,
        edits={" or went_back or pulse.revision < least.synced_revision:": " or went_back:"},
        caught_by="tests/api/test_rebuild.py::test_a_gate_that_went_back_behind_what_an_operator_changed_is_noticed",
    ),
    Mutant(
        name="A round that the gate has lost is filled anew instead of rebuilt",
        trap="F51",
        path=OPENING,
        edits={"    if round_.opened_ms is None and round_.epoch > FIRST_EPOCH:\n": "    if False:\n"},
        caught_by="tests/api/test_keeper.py::test_a_round_of_a_later_epoch_is_rebuilt_and_never_filled",
    ),
    Mutant(
        name="A rebuild forgets that orders have come back",
        trap="F51",
        path="engine/rounds/rebuild.py",
        edits={"sum(each.released for each in sold.values())": "0"},
        caught_by="tests/api/test_rebuild.py::test_an_empty_gate_is_rebuilt_and_sells_on",
    ),
    Mutant(
        name="A rebuild reads what it keeps while the gate admits",
        trap="F51",
        path="engine/rounds/rebuild.py",
        edits={"        await self._gate.fence(round_)\n        kept =": "        kept ="},
        caught_by="tests/api/test_rebuild.py::"
        "test_a_gate_that_comes_back_open_just_after_the_epoch_was_raised_admits_nobody",
    ),
    Mutant(
        name="A replica opens a round whose rebuild has begun",
        trap="F51",
        path="engine/rounds/failover.py",
        edits={
            "                    await self._gate.fence(round_)\n            elif": "                    pass\n            elif"
        },
        caught_by="tests/cluster/test_silent_replica.py::"
        "test_a_round_whose_rebuild_was_begun_admits_nobody_from_before[sentinel]",
        also=(
            "tests/cluster/test_silent_replica.py::"
            "test_a_round_whose_rebuild_was_begun_admits_nobody_from_before[cluster]",
        ),
    ),
    Mutant(
        name="A rebuild reads on by its own order of names",
        trap="F51",
        path="engine/rounds/rebuild.py",
        edits={"            *_, after = portion": "            after = max(portion)"},
        caught_by="tests/engine/rounds/test_rebuild_portions.py::test_nobody_is_counted_twice_or_left_out",
    ),
    Mutant(
        name="An order that cannot be written is never given up",
        trap="F36",
        path=FAILURES,
        edits={
            "            await self._bury(letter, str(refused))\n": "            await self._ledger.put_off(letter, str(refused), 3600)\n"
        },
        caught_by="tests/backends/sql/test_letters.py::test_after_the_last_try_it_is_failed_released_and_dead[sqlite]",
    ),
    Mutant(
        name="A letter that cannot be buried holds up the others",
        trap="ours",
        path=FAILURES,
        edits={"except LedgerRefused:  # not even": "except ZeroDivisionError:  # not even"},
        caught_by="tests/backends/sql/test_letters.py::test_a_letter_that_not_even_a_failed_row_can_be_written_for[postgres]",
    ),
    Mutant(
        name="Entries may name numbers that no database can hold",
        trap="ours",
        path="ports/queue_entry.py",
        edits={
            "_Round = Annotated[int, Meta(ge=1, le=_EXACT_MAX)]": "_Round = int",
            "_Quantity = Annotated[int, Meta(ge=1, le=QUANTITY_MAX)]": "_Quantity = int",
            "_Seconds = Annotated[int, Meta(ge=0, le=_INT_MAX)]": "_Seconds = int",
        },
        caught_by="tests/api/test_poison.py::test_impossible_numbers_stop_nobody[sqlite]",
    ),
    Mutant(
        name="An alarm that is answered with nonsense ends what raised it",
        trap="ours",
        path="http_call.py",
        edits={"FAILURES = (OSError, ValueError, HTTPException)": "FAILURES = (OSError, ValueError)"},
        caught_by="tests/engine/alarms/test_alarm.py::test_an_answer_that_is_not_http",
    ),
    Mutant(
        name="An alarm that is answered byte by byte is waited for",
        trap="ours",
        path="engine/alarms/delivery.py",
        edits={"async with asyncio.timeout(2 * TIMEOUT_S):": "async with asyncio.timeout(None):"},
        caught_by="tests/engine/alarms/test_alarm.py::test_an_answer_that_never_ends",
    ),
    Mutant(
        name="Every keeper tells the same alarm",
        trap="ours",
        path="backends/redis/lua/tell_alarm.lua",
        edits={"if redis.call('GET', KEYS[1]) == ARGV[1] then return 'told' end\n": ""},
        caught_by="tests/engine/alarms/test_alarm.py::test_one_of_the_keepers_that_see_the_same_tells_it",
    ),
    Mutant(
        name="A keeper that dies while it tells an alarm silences the others",
        trap="ours",
        path="backends/redis/lua/tell_alarm.lua",
        edits={"ARGV[2], 'PX', ARGV[3])": "ARGV[2])"},
        caught_by="tests/engine/alarms/test_alarm.py::test_a_keeper_that_dies_in_its_turn_is_told_for",
    ),
    Mutant(
        name="An alarm that nobody can agree about is told by nobody",
        trap="ours",
        path="engine/alarms/delivery.py",
        edits={
            "        except SeckillError:\n            return Turn.GO\n": "        except SeckillError:\n            return Turn.TOLD\n"
        },
        caught_by="tests/engine/alarms/test_alarm.py::test_where_nobody_knows_whose_turn_it_is_everybody_tells",
    ),
    Mutant(
        name="An alarm that is not taken is forgotten",
        trap="ours",
        path="engine/alarms/delivery.py",
        edits={"                continue\n            self._waiting.popleft()": "            self._waiting.popleft()"},
        caught_by="tests/engine/alarms/test_alarm.py::"
        "test_nobody_waits_for_a_receiver_that_is_away_and_it_gets_everything_in_order",
    ),
    Mutant(
        name="The same trouble is told again and again",
        trap="ours",
        path="engine/alarms/alarm.py",
        edits={"if self._reminders.has(key, what, facts):": "if False:"},
        caught_by="tests/engine/alarms/test_alarm.py::test_one_message_for_each_change_of_what_lasts",
    ),
    Mutant(
        name="A gate that is full says that it could sell",
        trap="ours",
        path="backends/redis/suitability.py",
        edits={
            '    return 0 < int(facts.info.get("maxmemory", "0")) < used_memory(facts.info)\n': "    return False\n"
        },
        caught_by="tests/operations/test_outage_alarm.py::test_a_real_gate_that_is_full_lost_or_away",
    ),
    Mutant(
        name="A database that only answers readers is taken for one that is well",
        trap="ours",
        path="backends/sql/ledger.py",
        edits={
            "PROBE_WITHIN_S), self.database.writers.begin() as": "PROBE_WITHIN_S), self.database.readers.connect() as"
        },
        caught_by="tests/operations/test_outage_alarm.py::test_a_real_database_that_others_have_locked",
    ),
    Mutant(
        name="Hiccups are told as an outage",
        trap="ours",
        path="operations/outage_alarm.py",
        edits={
            "{trouble: self._since_s.get(trouble, began_s) for trouble in found}": "self._since_s | "
            "{trouble: self._since_s.get(trouble, began_s) for trouble in found}"
        },
        caught_by="tests/operations/test_outage_alarm.py::test_hiccups_do_not_add_up[GATE_AWAY]",
    ),
    Mutant(
        name="A disk is told of when it is full, not before",
        trap="ours",
        path="domain/space.py",
        edits={"return self.free_bytes < self._enough_bytes": "return self.free_bytes <= 0"},
        caught_by="tests/operations/test_space_alarm.py::test_real_stores_tell_what_they_have",
    ),
    Mutant(
        name="A disk that is nearly full is told of at every look",
        trap="ours",
        path="operations/space_alarm.py",
        edits={"            if space.is_short and cause not in self._told:\n": "            if space.is_short:\n"},
        caught_by="tests/operations/test_space_alarm.py::test_what_is_short_is_told_once_and_so_is_its_end",
    ),
    Mutant(
        name="A gate that is away hides how full the database's disk is",
        trap="ours",
        path="operations/space_alarm.py",
        edits={"            with suppress(GateError, LedgerError):": "            with suppress(LedgerError):"},
        caught_by="tests/operations/test_space_alarm.py::"
        "test_a_store_that_is_away_neither_hides_the_other_nor_ends_its_alarm",
    ),
    Mutant(
        name="No keeper looks how full the disks are",
        trap="ours",
        path="roles/keeper.py",
        edits={
            '    steps.append(KeeperStep("space", SpaceAlarm(engine.gate, engine.ledger, use.alarm).step, '
            "SPACE_EVERY_S))\n": ""
        },
        caught_by="tests/operations/test_space_alarm.py::test_a_keeper_measures_it",
    ),
    Mutant(
        name="A process whose event loop hangs says that it is well",
        trap="ours",
        path="operations/role_health.py",
        edits={"if silent_s > HUNG_AFTER_S:": "if False:"},
        caught_by="tests/operations/test_role_health.py::test_a_loop_that_hangs_is_not_healthy",
    ),
    Mutant(
        name="A worker without a ledger says that it is ready",
        trap="ours",
        path="operations/role_health.py",
        edits={" and parts.ledger is StoreHealth.OK": ""},
        caught_by="tests/operations/test_role_health.py::test_a_worker_is_ready_when_gate_and_ledger_answer",
    ),
    Mutant(
        name="Every sale has figures of its own, however many there are",
        trap="ours",
        path="engine/rounds/sale_figures.py",
        edits={"if before is None and len(shown) >= SALES_SHOWN_MAX:": "if False:"},
        caught_by="tests/api/test_lapses.py::test_no_more_sales_are_shown_than_there_may_be",
    ),
    Mutant(
        name="What a process that was killed had open stays open in the figures",
        trap="ours",
        path="telemetry.py",
        edits={"        _forget_the_dead(self._folder)\n": ""},
        caught_by="tests/operations/test_telemetry.py::"
        "test_a_process_that_is_gone_has_nothing_open_and_its_counts_stay",
    ),
    Mutant(
        name="An order that is set aside is unknown to its buyer",
        trap="ours",
        path="engine/orders/buyer_orders.py",
        edits={"            aside = await self._set_aside(user, number)\n": "            aside = None\n"},
        caught_by="tests/api/test_set_aside.py::test_all_ways_lead_to_it",
        also=("tests/api/test_set_aside.py::test_an_order_that_moves_while_it_is_looked_for_is_found[aside-find]",),
    ),
    Mutant(
        name="An order that moves on while its buyer looks for it is missed",
        trap="ours",
        path="engine/orders/buyer_orders.py",
        edits={"order = await self._written.of(number)\n            if": "order = None\n            if"},
        caught_by="tests/api/test_set_aside.py::test_an_order_that_moves_while_it_is_looked_for_is_found[at once-find]",
    ),
    Mutant(
        name="The list of orders is read against the way that they go",
        trap="ours",
        path="engine/orders/buyer_orders.py",
        edits={
            "        others = await self._not_written(user)\n": "",
            "        listed = {order.number for order in orders}\n": "        others = await self._not_written(user)\n"
            "        listed = {order.number for order in orders}\n",
        },
        caught_by="tests/api/test_set_aside.py::test_an_order_that_moves_while_it_is_looked_for_is_found[at once-newest]",
    ),
    Mutant(
        name="An order whose epoch is over is tried again for long",
        trap="ours",
        path="engine/orders/dead_letters.py",
        edits={"hopeless = isinstance(refused, EpochOver)": "hopeless = False"},
        caught_by="tests/api/test_set_aside.py::test_an_order_of_a_void_epoch_is_failed_at_once",
    ),
    Mutant(
        name="A stream that was lost is not noticed while others fill the next",
        trap="F37",
        path=MISSING,
        edits={"if queue.added < self._added.get(lane, 0)": "if queue.added < 0"},
        caught_by="tests/audit/test_lost_keys.py::test_a_lost_stream_with_60_queued_under_load[by its count-sqlite]",
    ),
    Mutant(
        name="Orders that are neither queued nor written stay lost",
        trap="F37",
        path=MISSING,
        edits={" or (is_still and missing > explained)": ""},
        caught_by="tests/audit/test_lost_keys.py::test_a_lost_stream_with_60_queued_under_load[by its silence-sqlite]",
    ),
    Mutant(
        name="A rebuild forgets what no worker has written",
        trap="F51",
        path="engine/rounds/rebuild.py",
        edits={"kept = await self._unwritten.keep(round_)": "kept = None"},
        caught_by="tests/audit/test_lost_keys.py::test_a_rebuild_keeps_what_nobody_has_written[sqlite]",
        also=("tests/audit/test_lost_keys.py::test_lost_records_of_40_buyers_at_the_limit_who_press_again[20-sqlite]",),
    ),
    Mutant(
        name="The entry of an order that a rebuild has kept is refused",
        trap="F65",
        path="backends/sql/record_orders.py",
        edits={"or epoch > row.epoch": "or epoch != row.epoch"},
        caught_by="tests/audit/test_lost_keys.py::test_a_rebuild_keeps_what_nobody_has_written[sqlite]",
    ),
    Mutant(
        name="Records that the gate has not counted are believed",
        trap="ours",
        path="engine/orders/order_recovery.py",
        edits={"if view is not None and known.units > view.admitted and": "if view is None and"},
        caught_by="tests/audit/test_lost_keys.py::test_records_that_the_gate_has_not_counted_are_not_believed[sqlite]",
    ),
    Mutant(
        name="An older ledger keeps what has been given back since",
        trap="F51",
        path="engine/orders/order_recovery.py",
        edits={"            if known.given_back:": "            if False:"},
        caught_by="tests/audit/test_lost_keys.py::test_an_older_copy_of_the_ledger[sqlite-False]",
    ),
    Mutant(
        name="A sale sells the stock of one that the ledger has forgotten",
        trap="ours",
        path=OPENING,
        edits={"if opening.found is Found.ROUND and await _is_of_another(round_, gate, ledger):": "if False:"},
        caught_by="tests/audit/test_lost_keys.py::test_a_sale_that_gets_the_id_of_one_that_the_ledger_has_forgotten[sqlite]",
    ),
)
