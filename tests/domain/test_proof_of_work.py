"""Proof of work: only who has searched finds the number, and a solution is of use to its buyer in its round only."""

from dataclasses import replace

import pytest

from seckill.domain.proof_of_work import WorkChallenge, Works, WorkSolution, WorkVerdict, solve

WORKS = Works(b"k" * 32)
NOW_S, ENDS_S = 1_800_000_000, 1_800_000_600


def solved(posed: WorkChallenge) -> WorkSolution:
    number = solve(posed.challenge, posed.salt, posed.maxnumber)
    assert number is not None
    return WorkSolution(challenge=posed.challenge, salt=posed.salt, signature=posed.signature, number=number)


def judge(solution: WorkSolution, round_id: int = 7, user: str = "ann", now_s: float = NOW_S) -> WorkVerdict:
    return WORKS.judge(solution, round_id, user, now_s)


@pytest.fixture
def solution() -> WorkSolution:
    return solved(WORKS.pose(7, "ann", 500, ENDS_S))


def test_a_solution_is_right_however_often_it_is_shown(solution: WorkSolution) -> None:
    assert [judge(solution), judge(solution)] == [WorkVerdict.RIGHT] * 2


def test_it_is_of_use_to_nobody_else_nowhere_else_and_not_for_ever(solution: WorkSolution) -> None:
    assert judge(solution, user="bob") is WorkVerdict.OTHERS
    assert judge(solution, round_id=8) is WorkVerdict.OTHERS
    assert judge(solution, now_s=ENDS_S) is WorkVerdict.EXPIRED


def test_nothing_of_it_can_be_changed(solution: WorkSolution) -> None:
    others = solved(WORKS.pose(7, "bob", 500, ENDS_S))
    later = solution.salt.replace(str(ENDS_S), str(ENDS_S + 9))
    for changed in (
        replace(solution, number=solution.number + 1),
        replace(solution, salt=others.salt),
        replace(solution, salt=later),
        replace(solution, signature=others.signature),
        replace(solution, challenge=others.challenge),
        replace(solution, salt=others.salt, challenge=others.challenge, number=others.number),
    ):
        assert judge(changed) is WorkVerdict.WRONG
    assert Works(b"x" * 32).judge(solution, 7, "ann", NOW_S) is WorkVerdict.WRONG, "another key"


def test_no_digit_of_the_number_can_be_taken_for_one_of_the_salt() -> None:
    """Otherwise a challenge could be made to last longer, or to be for another buyer."""
    for _ in range(20):
        solution = solved(WORKS.pose(7, "ann", 500, ENDS_S))
        digits = str(solution.number)
        for cut in range(1, len(digits)):
            moved = replace(solution, salt=solution.salt + digits[:cut], number=int(digits[cut:]))
            assert judge(moved) is WorkVerdict.WRONG


def test_a_made_up_challenge_is_worth_nothing() -> None:
    """Its maker knows the number without a search."""
    easy = Works(b"of somebody else").pose(7, "ann", 1, ENDS_S)
    assert judge(solved(easy)) is WorkVerdict.WRONG


def test_the_number_lies_anywhere() -> None:
    """Half of the numbers have to be tried on average, and never more than all."""
    numbers = [solved(WORKS.pose(7, "ann", 100, ENDS_S)).number for _ in range(400)]
    assert min(numbers) < 10
    assert 90 <= max(numbers) < 100
    assert 40 < sum(numbers) / len(numbers) < 60


def test_salt_and_number_are_one_block_of_the_hash() -> None:
    posed = WORKS.pose(1 << 62, "ann" * 30, 100_000_000 * 16, ENDS_S)
    assert len(posed.salt) + len(str(posed.maxnumber)) <= 55
