"""`python -m tests.mutants`: the table of mutants. Exit code 1 if any survives."""

import sys

from tests.mutants.catalogue import MUTANTS
from tests.mutants.runner import is_sound, verdict


def main() -> int:
    print("| mutant | what it breaks | caught by | caught |")
    print("| --- | --- | --- | --- |")
    caught = 0
    for mutant in MUTANTS:
        found = verdict(mutant) if is_sound(mutant.caught_by) else "its test fails without it"
        caught += found == "caught"
        name = mutant.caught_by.removeprefix("tests/guarantee/")
        print(f"| {mutant.name} | {mutant.breaks} | {name} | {'yes' if found == 'caught' else found} |", flush=True)
    print(f"\n{caught} of {len(MUTANTS)} caught")
    return int(caught < len(MUTANTS))


if __name__ == "__main__":
    sys.exit(main())
