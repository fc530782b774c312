"""The meaning of OpenTelemetry's variables here."""

import pytest

from seckill.settings.otel import RATIO, Tracing

TO = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318/"}


@pytest.mark.parametrize(
    "environ",
    [
        {},
        {"OTEL_SERVICE_NAME": "shop"},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": " "},
        {**TO, "OTEL_SDK_DISABLED": "true"},
        {**TO, "OTEL_TRACES_EXPORTER": "none"},
    ],
)
def test_without_an_address_or_told_not_to_nothing_is_traced(environ: dict[str, str]) -> None:
    assert not Tracing.from_environment(environ).on


def test_the_address_is_that_of_traces_or_of_everything() -> None:
    assert Tracing.from_environment(TO).endpoint == "http://collector:4318/v1/traces"
    only = {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://tempo/push"}
    assert Tracing.from_environment(TO | only).endpoint == "http://tempo/push"


@pytest.mark.parametrize(
    ("sampler", "argument", "ratio", "heeds_parent"),
    [
        ("", "", RATIO, True),
        ("", "0.25", 0.25, True),
        ("traceidratio", "0.25", 0.25, False),
        ("parentbased_traceidratio", "", RATIO, True),
        ("always_on", "0.25", 1.0, False),
        ("parentbased_always_off", "", 0.0, True),
    ],
)
def test_samplers(sampler: str, argument: str, ratio: float, *, heeds_parent: bool) -> None:
    said = {"OTEL_TRACES_SAMPLER": sampler, "OTEL_TRACES_SAMPLER_ARG": argument}
    found = Tracing.from_environment(TO | said)
    assert (found.ratio, found.heeds_parent, found.problems) == (ratio, heeds_parent, ())


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("OTEL_TRACES_SAMPLER", "jaeger_remote"),
        ("OTEL_TRACES_SAMPLER_ARG", "many"),
        ("OTEL_TRACES_SAMPLER_ARG", "nan"),
        ("OTEL_TRACES_SAMPLER_ARG", "2"),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
    ],
)
def test_what_cannot_be_done_is_said_and_costs_nothing(name: str, value: str) -> None:
    found = Tracing.from_environment(TO | {name: value})
    assert found.ratio == RATIO
    [problem] = found.problems
    assert name in problem
