"""What operators look back at: the charts of a sale, what came of it, what happened to it, and alarms."""

import csv
import io
from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from seckill.domain.sale import Sale
from seckill.engine.alarms.alarm_cause import runbook
from seckill.engine.rounds.looking_back import POINTS_MAX, SaleHistory, TooManyPoints
from seckill.engine.rounds.summary import SaleSummary
from seckill.engine.rounds.timeline import Happening
from seckill.ports.alarm_book import AlarmFilter, KeptAlarm
from seckill.ports.figures import RoundReading
from seckill.ports.takings import Takings
from seckill.web.console import figure_schemas as schemas
from seckill.web.context import Context, context
from seckill.web.operators.record import facts_view
from seckill.web.problems import invalid, not_found
from seckill.web.requests.parameters import instant, known_sale, page_size, row_id
from seckill.web.responses import NO_STORE, json_response
from seckill.web.sales.sales import listed_sales, sale_in_path, with_round
from seckill.web.schemas import rfc3339, rfc3339_or_none

TIMELINE_MAX = 500
TIMELINE_DEFAULT = 100
ALARMS_MAX = 500
STEP_S_MAX = 86_400
DAY_MS = 86_400_000


async def show_history(request: Request) -> Response:
    ctx = context(request)
    sale, found = await _history(request, ctx)
    return json_response(
        schemas.History(
            sale_id=ctx.sale_cache.public_id(sale),
            from_=rfc3339(found.from_ms),
            to=rfc3339(found.to_ms),
            step_s=found.step_s,
            currency=sale.currency,
            points=_points(found),
        )
    )


async def export_history(request: Request) -> Response:
    ctx = context(request)
    sale, found = await _history(request, ctx)
    points = _points(found)
    reasons = sorted({reason for point in points for reason in point.refused})
    names = [name for name in schemas.HistoryPoint.__struct_fields__ if name != "refused"]
    text = io.StringIO(newline="")
    lines = csv.writer(text)
    lines.writerow([*names, *(f"refused_{reason}" for reason in reasons)])
    for point in points:
        told = [getattr(point, name) for name in names]
        lines.writerow(["" if value is None else value for value in told] + [point.refused.get(r, 0) for r in reasons])
    name = f"history-{ctx.sale_cache.public_id(sale)}.csv"
    headers = {**NO_STORE, "Content-Disposition": f'attachment; filename="{name}"'}
    return Response(text.getvalue().encode(), 200, headers, "text/csv")


async def _history(request: Request, ctx: Context) -> tuple[Sale, SaleHistory]:
    sale = await with_round(ctx, await sale_in_path(request), request.query_params.get("round"))
    only_round = sale.round.id if "round" in request.query_params else None
    from_ms, to_ms = instant(request, "from"), instant(request, "to")
    if from_ms is not None and to_ms is not None and to_ms <= from_ms:
        raise invalid("to", "must be later than `from`")
    try:
        return sale, await ctx.back.history.read(sale, only_round, from_ms, to_ms, _step_s(request))
    except TooManyPoints:
        raise invalid(
            "step", f"would give more than {POINTS_MAX} points; take a longer step or a shorter time"
        ) from None


def _step_s(request: Request) -> int | None:
    text = request.query_params.get("step")
    if text is None:
        return None
    step_s = row_id(text) or 0
    if not 1 <= step_s <= STEP_S_MAX:
        raise invalid("step", f"must be a number of seconds from 1 to {STEP_S_MAX}")
    return step_s


def _points(found: SaleHistory) -> list[schemas.HistoryPoint]:
    points = []
    before = {round_id: each.refused for round_id, each in found.before.items()}
    for each in found.readings:
        points.append(_point(each, before.get(each.round_id, {})))
        if each.refused:  # no API process may report for a moment, but what it counted stays counted
            before[each.round_id] = each.refused
    return points


def _point(each: RoundReading, before: Mapping[str, int]) -> schemas.HistoryPoint:
    """`before`: the claims refused until then."""
    since = {name: many - before.get(name, 0) for name, many in each.refused.items()}
    return schemas.HistoryPoint(
        at=rfc3339(each.at_s * 1000),
        round=str(each.round_id),
        available=each.available,
        accepted_units=each.accepted,
        persisted_units=each.persisted,
        refused={name: many for name, many in since.items() if many > 0},
        backlog=each.backlog,
        lag_ms=each.lag_ms,
        system_p99_ms=None if each.p99_us is None else each.p99_us / 1000,
        unpaid_units=each.unpaid,
        paid_units=each.paid,
        taken_cents=each.taken_cents,
        waiting=each.waiting,
    )


async def show_summary(request: Request) -> Response:
    ctx = context(request)
    sale = await with_round(ctx, await sale_in_path(request), request.query_params.get("round"))
    found = await ctx.back.summaries.of(sale)
    if found is None:
        raise not_found()
    return json_response(_summary(ctx, sale, found))


def _summary(ctx: Context, sale: Sale, found: SaleSummary) -> schemas.Summary:
    tally, story, begins_ms = found.tally, found.story, sale.round.begins_ms
    summary = schemas.Summary(
        sale_id=ctx.sale_cache.public_id(sale),
        round=str(sale.round.id),
        units=tally.total,
        sold_units=tally.sold,
        paid_units=tally.paid,
        sell_through=_share(tally.sold, tally.total) or 0.0,
        begins_at=rfc3339(begins_ms),
        first_order_at=rfc3339_or_none(story.first_ms),
        sold_out_at=rfc3339_or_none(story.gone_ms),
        seconds_to_sell_out=None if story.gone_ms is None else max(0, story.gone_ms - begins_ms) / 1000,
        returned_units=story.returned,
        lapsed=tally.lapsed,
        lapse_rate=_share(tally.lapsed, tally.orders) or 0.0,
        money=[_money(each) for each in found.takings],
        money_of_all_rounds=[_money(each) for each in found.takings_of_all_rounds],
        conversion=_conversion(found),
    )
    if sale.items:
        summary.items = [
            schemas.ItemSummary(
                item_id=ctx.item_ids.of(item.id),
                title=item.title,
                units=of.total,
                sold_units=of.sold,
                paid_units=of.paid,
                sell_through=_share(of.sold, of.total) or 0.0,
                orders=of.orders,
                lapsed=of.lapsed,
                net_cents=of.taken_cents,
            )
            for item in sale.items
            if (of := tally.items.get(item.id)) is not None
        ]
    return summary


def _conversion(found: SaleSummary) -> schemas.Conversion:
    tally, refused = found.tally, found.refused
    presses = tally.orders + sum(refused.values())
    return schemas.Conversion(
        viewers=None,
        presses=presses,
        refused=dict(refused),
        orders=tally.orders,
        paid_orders=tally.paid_orders,
        orders_per_press=_share(tally.orders, presses),
        paid_per_order=_share(tally.paid_orders, tally.orders),
    )


def _money(each: Takings) -> schemas.Money:
    return schemas.Money(
        currency=each.currency,
        taken_cents=each.taken_cents,
        refunded_cents=each.refunded_cents,
        refunding_cents=each.refunding_cents,
        net_cents=each.taken_cents - each.refunded_cents,
    )


def _share(part: int, whole: int) -> float | None:
    return round(part / whole, 4) if whole else None


async def show_timeline(request: Request) -> Response:
    ctx = context(request)
    sale = await sale_in_path(request)
    now_ms = ctx.sale_cache.now_ms()
    since_ms = instant(request, "from")
    until_ms = instant(request, "to")
    found = await ctx.back.timelines.of(
        sale,
        now_ms - ctx.settings.figures_kept_days * DAY_MS if since_ms is None else since_ms,
        min(now_ms + 1, until_ms or now_ms + 1),
        page_size(request, TIMELINE_MAX, TIMELINE_DEFAULT),
    )
    public_id = ctx.sale_cache.public_id(sale)
    return json_response(schemas.Timeline(sale_id=public_id, entries=[_happening(ctx, each) for each in found]))


def _happening(ctx: Context, each: Happening) -> schemas.TimelineEntry:
    return schemas.TimelineEntry(
        at=rfc3339(each.at_ms),
        kind=each.kind,
        round=None if each.round_id is None else str(each.round_id),
        who=each.who,
        why=each.why,
        before=facts_view(ctx, each.before),
        after=facts_view(ctx, each.after),
        facts=dict(each.facts),
    )


async def list_alarms(request: Request) -> Response:
    ctx = context(request)
    on = request.query_params.get("on", "false")
    if on not in ("true", "false"):
        raise invalid("on", "must be `true` or `false`")
    wanted = AlarmFilter(
        sale_id=await known_sale(ctx, request),
        since_ms=instant(request, "since"),
        until_ms=instant(request, "until"),
        on=on == "true",
    )
    found = await ctx.back.alarms.newest(wanted, page_size(request, ALARMS_MAX))
    return json_response(schemas.Alarms([_alarm(ctx, each) for each in found]))


def _alarm(ctx: Context, alarm: KeptAlarm) -> schemas.AlarmView:
    facts: dict[str, Any] = {name: value for name, value in alarm.facts.items() if name not in ("sale", "round")}
    if alarm.facts.get("round") is not None:
        facts["round"] = str(alarm.facts["round"])
    return schemas.AlarmView(
        id=str(alarm.id),
        what=alarm.what,
        sale_id=None if alarm.sale_id is None else ctx.sale_ids.encode(alarm.sale_id),
        on=alarm.is_on,
        raised_at=rfc3339(alarm.raised_ms),
        told_at=rfc3339(alarm.told_ms),
        times=alarm.times,
        resolved_at=rfc3339_or_none(alarm.resolved_ms),
        facts=facts,
        runbook=runbook(alarm.what),
    )


async def show_overview(request: Request) -> Response:
    ctx = context(request)
    await ctx.sale_cache.look_first()
    sales, _ = listed_sales(ctx, request.query_params.get("before"), hidden_too=True)
    standings = await ctx.back.summaries.standings(sales)
    alarms = await ctx.back.alarms.newest(AlarmFilter(on=True), ALARMS_MAX)
    shown = []
    for sale in sales:
        standing, pulse = standings[sale.round.id], ctx.sale_cache.pulse(sale.round.id)
        shown.append(
            schemas.SaleStanding(
                sale_id=ctx.sale_cache.public_id(sale),
                round=str(sale.round.id),
                units=sale.round.total,
                sold_units=standing.sold,
                available=None if pulse is None else pulse.available,
                paid_units=standing.paid,
                net_cents=standing.taken_cents,
                currency=sale.currency,
                alarms=sum(alarm.sale_id == sale.id for alarm in alarms),
            )
        )
    return json_response(
        schemas.Overview(
            server_time=rfc3339(ctx.sale_cache.now_ms()), sales=shown, alarms=[_alarm(ctx, each) for each in alarms]
        )
    )
