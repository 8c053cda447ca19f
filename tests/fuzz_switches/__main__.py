"""Command: run many systems and count how they went."""

import argparse
from collections import Counter

from fuzz_switches import run


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0)
    options = parser.parse_args()
    kinds, sliding, steps, worst = Counter(), 0, 0, (0.0, 0)
    for number in range(options.first, options.first + options.count):
        found = run(options.seed, number)
        kinds[found.kind] += 1
        steps += found.steps
        worst = max(worst, (found.error, number))
        sliding += "structure changed" in found.text or "index 2" in found.text
        if found.kind != "ok":
            print(f"{number}: {found.kind}: {found.text[:200]}", flush=True)
    print(dict(kinds), f"{sliding} of them slid, {steps} steps")
    print(f"largest error: {worst[0]:.3g} tolerances, of number {worst[1]}")


if __name__ == "__main__":
    main()
