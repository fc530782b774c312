"""Flaws of voucher codes, and of what operators upload."""

from tests.mutants.mutant import Mutant

_SQL = "tests/backends/sql/test_vouchers.py"
_API = "tests/api/test_vouchers.py"

MUTANTS = (
    Mutant(
        name="Two who pay at once take the same code",
        trap="ours",
        path="backends/sql/voucher_gifts.py",
        edits={
            "            .with_for_update(skip_locked=True)\n": "",
            '"taken"),\n                vouchers.c.given_ms.is_(None),': '"taken"),',
        },
        caught_by=f"{_SQL}::test_many_pay_at_once_and_each_unit_has_its_own_code[postgres]",
    ),
    Mutant(
        name="Who pays waits for everybody who takes a code",
        trap="ours",
        path="backends/sql/voucher_gifts.py",
        edits={'                database.among(vouchers.c.id, "taken"),\n': ""},
        caught_by=f"{_SQL}::test_who_pays_does_not_wait_for_others_who_take_codes[mariadb]",
    ),
    Mutant(
        name="Who pays gets no code",
        trap="ours",
        path="backends/sql/end_orders.py",
        edits={"                await self._gifts.give(connection, row)\n": ""},
        caught_by=f"{_SQL}::test_a_code_is_given_with_every_way_of_being_paid[sqlite-late]",
    ),
    Mutant(
        name="An order that is written again takes codes again",
        trap="ours",
        path="backends/sql/voucher_gifts.py",
        edits={"            ~select(vouchers.c.id).where(vouchers.c.order_id == orders.c.id).exists(),\n": ""},
        caught_by=f"{_SQL}::test_a_batch_that_is_written_twice_takes_no_codes_twice[sqlite]",
    ),
    Mutant(
        name="A code that its buyer has seen goes to another",
        trap="ours",
        path="domain/voucher.py",
        edits={'USED_SINCE = ("shown_ms", "redeemed_ms")': "USED_SINCE: tuple[str, ...] = ()"},
        caught_by=f"{_SQL}::test_a_returned_unit_takes_a_code_back_that_nobody_has_seen[sqlite]",
    ),
    Mutant(
        name="A code is shown that a refund has just taken back",
        trap="ours",
        path="backends/sql/vouchers.py",
        edits={
            "                marked = await connection.execute(self._mark_shown, these)\n"
            "                found = (await connection.execute(self._of_orders, these)).all()\n": (
                "                marked = await connection.execute(self._mark_shown, these)\n"
            )
        },
        caught_by=f"{_SQL}::test_show_and_refund_at_once_never_give_a_seen_code_to_another[postgres]",
    ),
    Mutant(
        name="A code of a refunded order can be redeemed",
        trap="ours",
        path="backends/sql/vouchers.py",
        edits={"v.order_id.is_not(None), v.void_ms.is_(None), v.redeemed_ms": "v.order_id.is_not(None), v.redeemed_ms"},
        caught_by=f"{_API}::test_a_refund_voids_the_code_that_was_seen",
    ),
    Mutant(
        name="A code is redeemed as often as somebody asks",
        trap="ours",
        path="backends/sql/vouchers.py",
        edits={"v.void_ms.is_(None), v.redeemed_ms.is_(None))\n        async": "v.void_ms.is_(None))\n        async"},
        caught_by=f"{_SQL}::test_fifty_who_redeem_one_code_at_once[sqlite]",
        also=(f"{_API}::test_fifty_tills_redeem_one_code_at_once",),
    ),
    Mutant(
        name="Codes are given before all of their upload has come",
        trap="ours",
        path="backends/sql/voucher_gifts.py",
        edits={"                voucher_uploads.c.complete_ms.is_not(None),\n": ""},
        caught_by=f"{_SQL}::test_nothing_of_an_upload_counts_before_it_is_complete[sqlite]",
    ),
    Mutant(
        name="An upload that was given up counts after all",
        trap="ours",
        path="backends/sql/vouchers.py",
        edits={
            "update(voucher_uploads).where(this, _ARRIVES).values(complete_ms": (
                "update(voucher_uploads).where(this).values(given_up_ms=None, complete_ms"
            )
        },
        caught_by=f"{_SQL}::test_what_is_left_of_an_upload_that_died_is_in_nobodys_way[sqlite]",
    ),
    Mutant(
        name="What died with its process is in the way of the next upload",
        trap="ours",
        path="backends/sql/vouchers.py",
        edits={" for row in present if row.given_up_ms is None]": " for row in present]"},
        caught_by=f"{_SQL}::test_what_is_left_of_an_upload_that_died_is_in_nobodys_way[sqlite]",
    ),
    Mutant(
        name="A sale opens without codes",
        trap="ours",
        path="domain/sale.py",
        edits={"shut = not (self.published and self.covered)": "shut = not self.published"},
        caught_by=f"{_API}::test_from_the_upload_to_the_till",
    ),
    Mutant(
        name="Units are added for which there are no codes",
        trap="ours",
        path="backends/sql/sales.py",
        edits={"            raise CodesMissing(missing)\n": "            return\n"},
        caught_by=f"{_SQL}::test_no_more_units_than_codes[sqlite]",
    ),
    Mutant(
        name="A second round opens with the codes of the first",
        trap="ours",
        path="backends/sql/voucher_cover.py",
        edits={
            "counted = rounds.c.covered == 1 if also is None else or_(rounds.c.covered == 1, also)": (
                "counted = rounds.c.covered == 1 if also is None else also"
            )
        },
        caught_by=f"{_SQL}::test_each_round_needs_codes_of_its_own[sqlite]",
    ),
    Mutant(
        name="A unit goes back on sale without a code",
        trap="ours",
        path="backends/sql/order_actions.py",
        edits={"            raise _Refused(ActionOutcome.OUT_OF_CODES)\n": "            pass\n"},
        caught_by=f"{_SQL}::test_a_unit_without_a_code_does_not_go_back_on_sale[sqlite]",
    ),
    Mutant(
        name="Codes stand in the log",
        trap="ours",
        path="web/error_answers.py",
        edits={'"/v1/admin/vouchers/…" if "code" in request.path_params else request.url.path': "request.url.path"},
        caught_by=f"{_API}::test_no_code_goes_into_a_log",
    ),
    Mutant(
        name="Anybody uploads codes",
        trap="S10",
        path="web/app.py",
        edits={'    if route.who == "operator":\n        return guarded(route, checked)\n': ""},
        caught_by=f"{_API}::test_a_token_of_a_buyer_uploads_nothing",
    ),
    Mutant(
        name="A glance at the list of orders shows every code",
        trap="ours",
        path="web/orders/order_list.py",
        edits={'    if "codes" not in request.query_params:\n        return False\n': ""},
        caught_by=f"{_API}::test_codes_are_shown_to_their_buyer_and_to_operators_only",
    ),
    Mutant(
        name="A process remembers which rounds give codes",
        trap="ours",
        path="backends/sql/voucher_gifts.py",
        edits={
            '        return (await connection.scalars(self._gives, {"round": round_id})).one_or_none()\n': (
                "        known = self.__dict__.setdefault('known', {})\n"
                "        if round_id not in known:\n"
                '            known[round_id] = (await connection.scalars(self._gives, {"round": round_id})).one_or_none()\n'
                "        return known[round_id]\n"
            )
        },
        caught_by=f"{_SQL}::test_a_number_that_means_another_round_by_now[sqlite-free]",
    ),
    Mutant(
        name="An item gets the codes of another",
        trap="ours",
        path="backends/sql/voucher_gifts.py",
        edits={"if (row.item_id or NO_ITEM) == of]": "if of == NO_ITEM]"},
        caught_by=f"{_SQL}::test_an_item_whose_codes_have_gone_gets_none_of_anothers[sqlite]",
        also=(f"{_SQL}::test_an_item_takes_its_own_codes_first_and_then_those_for_any[sqlite]",),
    ),
    Mutant(
        name="A sale opens with too few codes for one item and too many for another",
        trap="ours",
        path="domain/voucher.py",
        edits={"sum(min(0, left) for left in own)": "sum(own)"},
        caught_by=f"{_SQL}::test_what_one_item_has_too_many_is_of_no_use_to_another[sqlite]",
        also=(f"{_API}::test_codes_of_items",),
    ),
    Mutant(
        name="Units of an item are added for which there are no codes",
        trap="ours",
        path="backends/sql/sales.py",
        edits={"change.add_units > 0 or bool(decision.item_totals)": "change.add_units > 0"},
        caught_by=f"{_SQL}::test_what_one_item_has_too_many_is_of_no_use_to_another[sqlite]",
        also=(f"{_API}::test_codes_of_items",),
    ),
    Mutant(
        name="The audit does not look for which item a code is",
        trap="ours",
        path="audit/order_checks.py",
        edits={"    if subject.codes_astray:\n": "    if False:\n"},
        caught_by=(
            "tests/audit/test_plantings.py::"
            "test_a_planted_flaw_is_named[a code that is for another item than its order's-sqlite]"
        ),
    ),
    Mutant(
        name="A picture is unpacked however large it is",
        trap="S21",
        path="backends/pictures/pillow.py",
        edits={"    if width * height > PIXELS_MAX:\n        raise _too_large()\n": ""},
        caught_by="tests/api/test_images.py::test_what_is_no_picture_is_refused[50 megapixels]",
    ),
    Mutant(
        name="A picture tells where it was taken",
        trap="ours",
        path="backends/pictures/pillow.py",
        edits={'exif=b"", icc_profile=b"", xmp=b"")': "exif=PIL.Image.open(io.BytesIO(content)).getexif())"},
        caught_by="tests/api/test_images.py::test_nothing_but_the_picture_is_passed_on",
    ),
    Mutant(
        name="Any file is taken for a picture",
        trap="ours",
        path="backends/pictures/pillow.py",
        edits={"Image.open(io.BytesIO(content), formats=FORMATS)": "Image.open(io.BytesIO(content))"},
        caught_by="tests/api/test_images.py::test_what_is_no_picture_is_refused[another kind]",
    ),
    Mutant(
        name="A picture that a sale shows is forgotten",
        trap="ours",
        path="backends/sql/pictures.py",
        edits={"pictures.c.digest.in_(found - of_sales), old)": "pictures.c.digest.in_(found))"},
        caught_by="tests/api/test_images.py::test_what_no_sale_shows_is_forgotten_after_a_while",
    ),
    Mutant(
        name="An upload may trickle in for ever",
        trap="S20",
        path="web/connections/guarded_protocol.py",
        edits={"came_bytes >= self.limits.upload_bytes_min and now < self._upload_by": "now < self._upload_by + 1e9"},
        caught_by="tests/web/connections/test_guard_uploads.py::test_an_upload_that_trickles_is_cut[asyncio]",
        also=("tests/web/connections/test_guard_uploads.py::test_an_upload_ends_some_time[asyncio]",),
    ),
    Mutant(
        name="Every body may be as large as an upload",
        trap="S21",
        path="web/connections/guarded_protocol.py",
        edits={
            "self.limits if upload is None else self.limits.of_upload(upload.bytes_max)": (
                "self.limits.of_upload(1 << 30)"
            )
        },
        caught_by="tests/web/connections/test_guard_uploads.py::test_an_upload_may_be_large_and_nothing_else[asyncio]",
    ),
)
