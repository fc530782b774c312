from seckill.engine.claims.winner_filter import WinnerFilter


def test_no_winner_is_ever_missed_and_few_strangers_pass() -> None:
    winners = WinnerFilter(10_000)
    for i in range(10_000):
        winners.add(f"winner-{i}")
    assert all(f"winner-{i}" in winners for i in range(10_000))
    passed = sum(f"stranger-{i}" in winners for i in range(20_000))
    assert passed < 100, "more than half a percent of strangers would be sent to the gate"


def test_without_winners_nobody_is_in() -> None:
    assert "anyone" not in WinnerFilter(0)
