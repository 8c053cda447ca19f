"""Command: run many cases and count how they went."""

import argparse
import multiprocessing
import sys
from collections import Counter

from fuzz_runs import FAMILIES, run


def _one(job):
    seed, number = job
    found = run(seed, number)
    found.solution = found.dressed = found.case = found.truth = None
    found.options = {
        k: v for k, v in found.options.items() if k in ("form", "trace", "rtol", "max_order")
    }
    return number, found


def show(seed, number):
    """Tell everything about one run."""
    found = run(seed, number)
    print(f"{number}: {found.kind}: {found.name}: {found.text} (worst {found.worst:.3g})")
    for key, value in found.options.items():
        print(f"  {key} = {value!r}")
    if (dressed := found.dressed) is not None:
        print(f"  span = {dressed.span}, y0 = {dressed.y0}, order = {dressed.order}")
        print(f"  scale = {dressed.scale}")
    if found.truth is not None:
        print(
            f"  allowed = {found.truth.allowed}, switches = {found.truth.trajectory.switches[:8]}"
        )
    if found.solution is not None:
        print(found.solution)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--show", type=int)
    parser.add_argument("--family", help="only families with this in their name")
    options = parser.parse_args()
    if options.family:
        FAMILIES[:] = [f for f in FAMILIES if options.family in f.__name__]
    if options.show is not None:
        show(options.seed, options.show)
        return 0
    counts, worst = Counter(), Counter()
    jobs = [(options.seed, k) for k in range(options.first, options.first + options.count)]
    with multiprocessing.Pool(options.jobs, maxtasksperchild=200) as pool:
        for number, found in pool.imap_unordered(_one, jobs):
            counts[found.kind] += 1
            if found.kind not in ("ok", "skipped"):
                worst[f"{found.kind}: {found.name}"] += 1
                print(
                    f"{number}: {found.kind}: {found.name}: {found.text[:300]} {found.options}",
                    flush=True,
                )
    print(dict(counts))
    for text, count in sorted(worst.items()):
        print(f"  {count:4d} {text}")
    return 1 if counts["wrong"] or counts["raised"] or counts["hangs"] else 0


if __name__ == "__main__":
    sys.exit(main())
