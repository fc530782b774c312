"""`python -m tests.endure`: leg after leg, until there are enough admissions and faults. Runs on where it was left."""

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path

from tests.endure.legs import Leg, Result, legs, run, totals
from tests.endure.report import document, report

STATE = "legs.json"


def main() -> int:
    parser = argparse.ArgumentParser(prog="make endure")
    parser.add_argument("--folder", type=Path, default=Path(".endure"), help="where it is kept, and goes on from")
    parser.add_argument("--admissions", type=int, default=10_000_000, help="in total, over all set-ups")
    parser.add_argument("--faults", type=int, default=3000, help="in total, over all set-ups")
    parser.add_argument("--minutes", type=float, default=10.0, help="of each leg")
    parser.add_argument("--legs", type=int, help="run at most this many from now on")
    wanted = parser.parse_args()
    try:
        results = endure(
            wanted.folder, wanted.admissions, wanted.faults, wanted.minutes, legs_max=wanted.legs, run_leg=run
        )
    except KeyboardInterrupt:
        _say("Interrupted. The same command goes on with the leg that was under way.")
        return 2
    _say(f"The report is {wanted.folder / 'endure.html'}")
    return 0 if all(result.verdict == "holds" for result in results) else 1


def endure(
    folder: Path,
    admissions: int,
    faults: int,
    minutes: float,
    *,
    run_leg: Callable[[Leg, Path], Result],
    legs_max: int | None = None,
) -> list[Result]:
    folder.mkdir(parents=True, exist_ok=True)
    results = _read(folder)
    done = {result.leg.number for result in results}
    new = 0
    for leg in legs(minutes):
        if leg.number in done:
            continue
        admitted, hit = totals(results)
        if (admitted >= admissions and hit >= faults) or new == legs_max:
            break
        _say(f"{admitted:,} of {admissions:,} admissions, {hit:,} of {faults:,} faults. Now {leg.name}")
        result = run_leg(leg, folder)
        results.append(result)
        new += 1
        _say(f"{leg.name}: {result.verdict}, {result.admissions:,} admissions, {result.faults} faults{_wrong(result)}")
        _write(folder, results, admissions, faults)
    return results


def _wrong(result: Result) -> str:
    return "".join(f"\n  {sentence}" for sentence in result.wrong)


def _read(folder: Path) -> list[Result]:
    file = folder / STATE
    return [Result.read(found) for found in json.loads(file.read_text())] if file.exists() else []


def _write(folder: Path, results: list[Result], admissions: int, faults: int) -> None:
    """Writes after every leg, so that there is a report of what was done so far: complete, or not at all."""
    found = document(results, admissions, faults)
    for name, text in (
        ("endure.json", json.dumps(found, indent=2)),
        ("endure.html", report(found)),
        (STATE, json.dumps([result.document() for result in results], indent=1)),
    ):
        draft = folder / f"{name}.new"
        draft.write_text(text, encoding="utf-8")
        draft.rename(folder / name)


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
