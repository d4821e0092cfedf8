"""How quick context packages are made: ``./scripts/bench packages [--quick] [--only ROW …]``.

What is measured in time should have the machine for itself. Exits with 0 also when goals are missed, which it says.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from scripts.benches.knowledge.audit import measure_audit
from scripts.benches.knowledge.policy import measure_policy
from scripts.benches.shared.report import Report

MEASURES: Final[Mapping[str, Callable[[Report, bool], None]]] = {"policy": measure_policy, "audit": measure_audit}


def measure(only: Sequence[str], *, quick: bool) -> Report:
    report = Report("Context packages")
    report.notes.append(f"{os.cpu_count()} cores, load average {os.getloadavg()[0]:.1f} at the start.")
    for name, row in MEASURES.items():
        if not only or name in only:
            print(f"{name} …", file=sys.stderr)
            row(report, quick)
    return report


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of the samples")
    parser.add_argument("--only", nargs="+", choices=list(MEASURES), default=[], metavar="ROW", help="these rows alone")
    given = parser.parse_args()
    try:
        report = measure(given.only, quick=given.quick)
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return 130
    report.print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
