"""Makes the report of a rehearsal as one HTML file."""

from collections.abc import Mapping
from html import escape
from typing import Any

from seckill.lab.rehearsal.crowd import HOLDS
from seckill.lab.rehearsal.judgement import REACHED, UNANSWERED_MAX
from seckill.lab.rehearsal.plan import SAFE_SHARE
from seckill.lab.reports.charts import Bar, Row, chart
from seckill.lab.reports.charts import Part as Piece
from seckill.lab.reports.page import Tone, cell, page, table
from seckill.lab.reports.timeline import PHASES, Span, TimelineLine, timeline

Found = Mapping[str, Any]

# Parts whose use of a core the report shows.
NAMES = ("sender", "api", "gate", "worker", "keeper", "machine")
BUSY_WORDS = {
    "sender": "what sends",
    "api": "API, busiest process",
    "gate": "gate, busiest primary",
    "worker": "worker, busiest process",
    "keeper": "keeper",
    "machine": "all cores of the sending machine",
}
COST_WORDS = {
    "api_us": "API, µs of CPU a press",
    "gate_us": "gate, µs of CPU a press",
    "worker_us": "worker, µs of CPU an order",
    "record_us": "database, µs in transactions an order",
    "gate_bytes": "gate, bytes of memory an order",
    "orders": "orders a press",
    "bytes_in": "bytes a press into the deployment",
    "bytes_out": "bytes a press out of it",
}
NEED_WORDS = {
    "api": "API processes",
    "workers": "workers",
    "primaries": "primaries of the gate",
    "lanes": "lanes of the sale",
    "cores": "cores used, without the database",
    "orders_per_s": "orders a second for the database",
    "transactions_at_once": "transactions at once",
    "connections": "connections",
    "network_mbit": "Mbit/s",
    "gate_mb_per_million": "gate's MB for a million orders",
}


def figure(value: float | None, *, percent: bool = False) -> str:
    if value is None:
        return "?"
    if percent:
        return f"{value:.0%}"
    return f"{value:,.0f}" if float(value).is_integer() or abs(value) >= 100 else f"{value:,.2f}"


def tone_of(found: Found) -> Tone:
    code = found["verdict"]["exit_code"]
    if code == REACHED:
        return Tone.GOOD
    return Tone.BAD if code == 1 else Tone.NEUTRAL


def audit_told(audit: str) -> str:
    return "unknown, so run `seckill audit` there" if audit == "unknown" else audit


def report(found: Found) -> str:
    deployment = found["deployment"]
    counts = ", ".join(f"{each['processes']} {role}" for role, each in deployment["processes"].items())
    return page(
        title="seckill rehearse",
        verdict=found["verdict"]["says"],
        about=f"{deployment['url']}, version {deployment['version']}: {counts}. "
        f"{sum(phase['pressed'] for phase in found['phases']):,} presses of at most {found['crowd']['buyers']:,} "
        f"buyers. Afterwards the audit: {audit_told(found['after']['audit'])}.",
        sections=[
            _advice(found),
            _rates(found),
            _busy(found),
            _timeline(found),
            "<h2>Phases</h2>",
            _phases(found),
            "<h2>What a press costs</h2>",
            _costs(found),
            "<h2>What a larger crowd needs</h2>",
            _needs(found),
            "<h2>Answers</h2>",
            _answers(found),
        ],
        method=method(found),
        command=found["run"]["command"],
        tone=tone_of(found),
    )


def _advice(found: Found) -> str:
    listed = "".join(f"<li>{escape(sentence)}</li>" for sentence in found["advice"])
    return f'<h2>What to change</h2><ul class="method">{listed}</ul>'


def _label(phase: Found) -> str:
    return f"{'opening, ' if phase['shape'] == 'wave' else ''}{phase['rate_per_s']:,.0f} a second"


def _rates(found: Found) -> str:
    rows = [
        Row(
            _label(phase),
            [
                Bar(
                    [
                        Piece(
                            "99 % of answers within, every promise kept" if phase["good"] else "not every promise kept",
                            "paid" if phase["good"] else "dead",
                            phase["p99_ms"] or 0.0,
                        )
                    ],
                    f"{phase['p99_ms'] or 0:,.0f} ms" + ("" if phase["good"] else f" · full: {phase['full']}"),
                )
            ],
        )
        for phase in found["phases"]
    ]
    return chart("99 of 100 presses were answered within", rows, mark=("promised", found["promises"]["p99_ms"]))


def _busy(found: Found) -> str:
    bad = [phase for phase in found["phases"] if not phase["good"]]
    shown = min(bad, key=lambda phase: phase["rate_per_s"]) if bad else found["phases"][-1] if found["phases"] else None
    if shown is None:
        return ""
    rows = [
        Row(
            BUSY_WORDS[name],
            [
                Bar(
                    [Piece("share of a core", "unpaid", share or 0.0)],
                    "cannot be seen from here" if share is None else f"{share:.0%}",
                )
            ],
        )
        for name, share in shown["busy"].items()
    ]
    return chart(f"How busy each part was at {_label(shown)}", rows, mark=("one core", 1.0))


def _timeline(found: Found) -> str:
    series = found["series"]
    spans = [Span(begins_s, ends_s, name) for begins_s, ends_s, name in series["phases"]]
    return timeline(
        "What happened",
        [
            TimelineLine(
                "accepted orders a second", "paid", [(at_s, value) for at_s, value in series["accepted_per_s"]]
            ),
            TimelineLine(
                "orders that wait to be written", "queued", [(at_s, value) for at_s, value in series["backlog"]]
            ),
        ],
        spans,
        PHASES,
    )


def _phases(found: Found) -> str:
    rows = [
        [
            cell(_label(phase)),
            cell(f"{phase['answered_per_s']:,.0f}"),
            cell(f"{phase['p50_ms'] or 0:g} ms"),
            cell(f"{phase['p99_ms'] or 0:g} ms"),
            cell(f"{phase['late_p99_ms'] or 0:g} ms"),
            cell(f"{phase['lag_ms']:,} ms"),
            cell(f"{phase['connections']:,}"),
            cell(figure(phase["admit_batch"])),
            cell(figure(phase["record_batch"])),
            *(cell(figure(phase["busy"][name], percent=True)) for name in NAMES),
            cell(phase["why"], look="text" if phase["good"] else "text bad"),
        ]
        for phase in found["phases"]
    ]
    heads = ["presses", "answered a second", "half within", "99 % within", "sent late (99 %)", "written after"]
    heads += ["connections", "claims a call", "orders a transaction", *NAMES, "what"]
    return table(heads, rows, text=["what"])


def _costs(found: Found) -> str:
    rows = [[cell(words), cell(figure(found["costs"][name]))] for name, words in COST_WORDS.items()]
    return table(["part", "measured"], rows)


def _needs(found: Found) -> str:
    if not found["needs"]:
        return "<p>No rate went well, so nothing can be said of larger ones.</p>"
    rows = [[cell(words), *(cell(figure(each[name])) for each in found["needs"])] for name, words in NEED_WORDS.items()]
    batch = max((phase["admit_batch"] or 1.0 for phase in found["phases"] if phase["good"]), default=1.0)
    return (
        table(["for", *(f"{each['rate']:,.0f} a second" for each in found["needs"])], rows)
        + f"<p>At most {batch:,.1f} claims shared a call to the gate in good phases. In a larger crowd more do, and "
        "each costs less: these figures are upper limits.</p>"
    )


def _answers(found: Found) -> str:
    names = list(dict.fromkeys(name for phase in found["phases"] for name in phase["outcomes"]))
    rows = [
        [cell(_label(phase)), *(cell(f"{phase['outcomes'].get(name, 0):,}") for name in names)]
        + [cell(f"{phase[name]:,}") for name in ("looked", "watched", "paid", "failed_beside")]
        for phase in found["phases"]
    ]
    return table(["presses", *names, "looked", "watched", "paid", "of these failed"], rows)


def method(found: Found) -> list[str]:
    crowd, promises, machine = found["crowd"], found["promises"], found["run"]["machine"]
    habits = crowd["habits"]
    sent_by = "one process" if crowd["senders"] == 1 else f"{crowd['senders']} processes"
    where = (
        "The sending machine also serves, so both compete for its cores."
        if found["deployment"]["shares_the_machine"]
        else "The sending machine does not serve."
    )
    return [
        f"Sent by {sent_by} from a machine with {machine['cores']} cores ({machine['system']}, "
        f"Python {machine['python']}). {where}",
        "Visitors come by chance at the given rate, whether or not those before them were answered; what they wait is "
        "counted from the moment at which they came.",
        f"{habits['looks']:.0%} look at the sale first; {habits['repeats']:.0%} press again with the same key; "
        f"{habits['bots']:.0%} are bots that press {habits['bot_presses']} times in a row; of those with an order, "
        f"{habits['polls']:.0%} wait for it in a long poll and {habits['streams']:.0%} watch an event stream; "
        f"{habits['pays']:.0%} of these pay, where the payment provider is the sandbox.",
        f"A phase is good when 99 of 100 presses are answered within {promises['p99_ms']:,.0f} ms, all but "
        f'{UNANSWERED_MAX:.1%} have an answer other than "not now", and orders are written within '
        f"{promises['lag_ms'] / 1000:g} s.",
        f"The rate doubles until a phase is not good, then halves the gap. {SAFE_SHARE:.0%} of the highest good rate "
        f"is then the peak of an opening: everybody at once for {HOLDS:.0%} of its time, then fewer. The rate is "
        "called safe when that was good.",
        "Costs are those of the good phases with the highest rates: the time of processors that each process reports, "
        "over the claims and orders that it reports, without what it uses when nobody is there. "
        f"A larger crowd is planned with {promises['planned_share_of_a_core']:.0%} of a core for each "
        "process. It is a straight line from what was measured: the database, the network and the proxy have limits of "
        "their own.",
        "Nothing was sold out: to accept costs the most, and a real crowd, most of which is refused, costs less.",
    ]
