"""The routes that show operators the past of a sale; see `routes.py`."""

from seckill.domain.operator import Role
from seckill.web.console import figure_schemas, looking_back
from seckill.web.route import Route

_SPAN = (
    ("from", "Only from this time on; the start of the sale if left out"),
    ("to", "Only before this time; now, or when the sale was over, if left out"),
)
_ROUND = ("round", "Another round of the sale than the current one")
_STEP = ("step", "Seconds from one point to the next, 1 to 86400; as many as give a chart if left out")

FIGURE_ROUTES = (
    Route(
        method="GET",
        path="/v1/admin/overview",
        summary="How all sales stand that are on or to come, and the last 100 that are over; and the alarms that last",
        handler=looking_back.show_overview,
        who="operator",
        role=Role.VIEWER,
        answer=figure_schemas.Overview,
        query=(("before", "`older` of the list of sales: 100 that were over earlier"),),
        problems=(422, 503),
    ),
    Route(
        method="GET",
        path="/v1/admin/alarms",
        summary="Alarms that were raised, newest first",
        handler=looking_back.list_alarms,
        who="operator",
        role=Role.VIEWER,
        answer=figure_schemas.Alarms,
        query=(
            ("on", "`true`: only those that last now"),
            ("sale_id", "Only about this sale"),
            ("since", "Only from this time on"),
            ("until", "Only before this time"),
            ("limit", "How many, 1 to 500, 20 if left out"),
        ),
        problems=(422, 503),
    ),
    Route(
        method="GET",
        path="/v1/admin/sales/{sale_id}/history",
        summary="How a sale stood, step by step: what its charts are drawn from",
        handler=looking_back.show_history,
        who="operator",
        role=Role.VIEWER,
        answer=figure_schemas.History,
        query=(*_SPAN, _STEP, ("round", "Only of this round")),
        problems=(404, 422, 503),
    ),
    Route(
        method="GET",
        path="/v1/admin/sales/{sale_id}/history.csv",
        summary="The same for a spreadsheet",
        handler=looking_back.export_history,
        who="operator",
        role=Role.VIEWER,
        media_type="text/csv",
        query=(*_SPAN, _STEP, ("round", "Only of this round")),
        problems=(404, 422, 503),
    ),
    Route(
        method="GET",
        path="/v1/admin/sales/{sale_id}/summary",
        summary="What came of a round: money, conversion, sell-through",
        handler=looking_back.show_summary,
        who="operator",
        role=Role.VIEWER,
        answer=figure_schemas.Summary,
        query=(_ROUND,),
        problems=(404, 503),
    ),
    Route(
        method="GET",
        path="/v1/admin/sales/{sale_id}/timeline",
        summary="What happened to a sale, newest first: starts, sell-outs, returns, changes and by whom, alarms",
        handler=looking_back.show_timeline,
        who="operator",
        role=Role.VIEWER,
        answer=figure_schemas.Timeline,
        query=(
            ("from", "Only from this time on"),
            ("to", "Only before this time"),
            ("limit", "How many, 1 to 500, 100 if left out"),
        ),
        problems=(404, 422, 503),
    ),
)
