"""Flaws of payment providers and of the pages that buyers pay on."""

from tests.mutants.mutant import Mutant

STRIPE = "backends/payment/stripe_checkout.py"
ALIPAY = "backends/payment/alipay.py"
WECHAT = "backends/payment/wechat.py"
CHECKOUTS = "engine/money/checkouts.py"
OF_STRIPE = "tests/backends/payment/test_stripe.py"
OF_ALIPAY = "tests/backends/payment/test_alipay.py"
OF_WECHAT = "tests/backends/payment/test_wechat.py"
OF_CHECKOUTS = "tests/api/payments/test_checkouts.py"

MUTANTS = (
    Mutant(
        name="Any webhook is Stripe's",
        trap="S26",
        path=STRIPE,
        edits={"        if not any(matches):\n": "        if not matches:\n"},
        caught_by=f"{OF_STRIPE}::test_signatures_of_other_times_and_other_secrets",
        also=("tests/backends/payment/test_conformance.py::test_it_keeps_what_a_provider_promises[stripe]",),
    ),
    Mutant(
        name="A webhook of Stripe's may be played again for ever",
        trap="S26",
        path=STRIPE,
        edits={"if abs(now_s - _moment(header)) > AGE_S_MAX:": "if now_s < 0:"},
        caught_by=f"{OF_STRIPE}::test_signatures_of_other_times_and_other_secrets",
    ),
    Mutant(
        name="Each press makes a session of its own at Stripe",
        trap="S12",
        path=STRIPE,
        edits={'key = f"seckill-{bill.order_id}-{part}"': 'key = f"seckill-{bill.order_id}-{time.time_ns()}"'},
        caught_by=f"{OF_STRIPE}::test_a_bill_has_one_session_however_often_it_is_asked_for",
    ),
    Mutant(
        name="A refund is made again when Stripe has forgotten its key",
        trap="S26",
        path=STRIPE,
        edits={"made = await self._found(refund) if refund.attempts > 1 else None": "made = None"},
        caught_by=f"{OF_STRIPE}::test_a_refund_is_made_once_when_stripe_has_forgotten_the_key",
    ),
    Mutant(
        name="A refund that is pending at Stripe is done",
        trap="ours",
        path=STRIPE,
        edits={'if made.status == "succeeded":': 'if made.status in ("succeeded", "pending"):'},
        caught_by=f"{OF_STRIPE}::test_a_refund_is_asked_for_until_it_is_done",
    ),
    Mutant(
        name="What Stripe cannot express is rounded",
        trap="ours",
        path="backends/payment/stripe_amounts.py",
        edits={"if rest or (currency in _LAST_DIGIT and amount % 10):": "if rest and currency in _LAST_DIGIT:"},
        caught_by=f"{OF_STRIPE}::test_what_stripe_cannot_express_is_refused_and_not_rounded[KWD-9999]",
    ),
    Mutant(
        name="What another app has sold through Alipay pays our order",
        trap="S26",
        path=ALIPAY,
        edits={'if said.get("app_id") != self._app_id or (': "if ("},
        caught_by=f"{OF_ALIPAY}::test_notices",
    ),
    Mutant(
        name="Any answer is Alipay's",
        trap="S26",
        path=ALIPAY,
        edits={"if not any(fits(key, bytes(answer), signature) for key in self._public_keys):": "if not signature:"},
        caught_by=f"{OF_ALIPAY}::test_answers_that_are_not_alipays_are_not_believed",
    ),
    Mutant(
        name="A refund of which Alipay says that nothing moved is done",
        trap="ours",
        path=ALIPAY,
        edits={'if made.get("fund_change") == "Y":': 'if made.get("fund_change"):'},
        caught_by=f"{OF_ALIPAY}::test_refunds",
    ),
    Mutant(
        name="Yuan become fen by way of a float",
        trap="ours",
        path="backends/payment/trade_numbers.py",
        edits={
            'return int(found[1]) * 100 + int((found[2] or "").ljust(2, "0"))': "return int(float(found[0]) * 100)",
        },
        caught_by=f"{OF_ALIPAY}::test_yuan_and_fen",
        also=("tests/backends/payment/test_conformance.py::test_it_keeps_what_a_provider_promises[alipay]",),
    ),
    Mutant(
        name="Any answer is WeChat Pay's",
        trap="S26",
        path=WECHAT,
        edits={"            self._signatures.verify(reply.headers, reply.body, time.time())\n": "            pass\n"},
        caught_by=f"{OF_WECHAT}::test_answers_that_are_not_wechat_pays_are_not_believed",
    ),
    Mutant(
        name="Any notice is WeChat Pay's",
        trap="S26",
        path="backends/payment/wechat_messages.py",
        edits={'if not fits(key, message, headers.get("wechatpay-signature", "")):': "if not message:"},
        caught_by=f"{OF_WECHAT}::test_signatures_of_others_and_of_other_times",
        also=("tests/backends/payment/test_conformance.py::test_it_keeps_what_a_provider_promises[wechat]",),
    ),
    Mutant(
        name="A refund that WeChat Pay is still making is done",
        trap="ours",
        path=WECHAT,
        edits={'if status == "SUCCESS":': 'if status in ("SUCCESS", "PROCESSING"):'},
        caught_by=f"{OF_WECHAT}::test_refunds",
    ),
    Mutant(
        name="Each press of a buyer is a call to the provider",
        trap="ours",
        path=CHECKOUTS,
        edits={"        if known is not None:\n            return known\n": ""},
        caught_by=f"{OF_CHECKOUTS}::test_a_buyer_who_presses_often_has_one_page_and_the_provider_one_call[sqlite]",
    ),
    Mutant(
        name="The presses of a buyer all at once are as many calls to the provider",
        trap="ours",
        path=CHECKOUTS,
        edits={"making = self._being_made.get(key)": "making = None"},
        caught_by=f"{OF_CHECKOUTS}::test_a_buyer_who_presses_often_has_one_page_and_the_provider_one_call[sqlite]",
    ),
    Mutant(
        name="Money of which no notice came is kept without an order",
        trap="F52",
        path=CHECKOUTS,
        edits={"                    await self._note(provider, order.number, notice)\n": "                    pass\n"},
        caught_by=f"{OF_CHECKOUTS}::test_money_of_which_no_notice_came_is_found_and_goes_back[sqlite]",
    ),
    Mutant(
        name="A page is over before what the provider said of it is noted",
        trap="F52",
        path=CHECKOUTS,
        edits={
            "                notice = await provider.call_off(": (
                "                await self._ledger.checkout_over(checkout.id)\n"
                "                notice = await provider.call_off("
            )
        },
        caught_by="tests/e2e/test_checkouts.py::test_money_and_orders_agree_whoever_dies_beside_the_provider",
    ),
    Mutant(
        name="A page stays open after its order is over",
        trap="ours",
        path="backends/sql/end_orders.py",
        edits={
            '            await connection.execute(self._look_at_checkouts, {"numbers": [row.id for row in ended]})\n': "",
        },
        caught_by="tests/backends/sql/test_checkouts.py::test_a_page_is_due_when_its_order_ends_and_not_before[sqlite]",
        also=(f"{OF_CHECKOUTS}::test_the_page_is_called_off_when_the_order_is_over[sqlite]",),
    ),
    Mutant(
        name="A shop whose provider is in test mode gives its goods away",
        trap="ours",
        path="operations/production_refusals.py",
        edits={'if getattr(provider, "test_mode", False):': "if False:"},
        caught_by="tests/test_provider_settings.py::test_a_role_does_not_start_in_test_mode_by_mistake",
    ),
)
