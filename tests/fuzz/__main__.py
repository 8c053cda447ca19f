"""Run the fuzzer: ``python -m fuzz --count 2000 --seed 1``."""

import argparse
import collections
import itertools
import sys
import time

from fuzz.cases import Grammar
from fuzz.compare import judge
from fuzz.singles import singles


def main():
    """Run cases and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--singles", action="store_true", help="every idiom by itself")
    parser.add_argument("--values", action="store_true", help="no runs, values only")
    parser.add_argument("--only", default="", help="only cases with this in their name")
    parser.add_argument("--show", help="print the source of one case, as seed:number")
    parser.add_argument("--sources", action="store_true", help="print sources of findings")
    options = parser.parse_args()
    if options.show:
        case = Grammar(options.show).case()
        print(case.source)
        print(case, judge(case), sep="\n")
        return 0
    counts, kinds = collections.Counter(), collections.Counter()
    began = time.monotonic()
    cases = singles() if options.singles else (
        Grammar(f"{options.seed}:{number}").case() for number in itertools.count())
    cases = (case for case in cases if options.only in case.name)
    for case in itertools.islice(cases, options.first, options.first + options.count):
        verdict = judge(case, runs=not options.values)
        counts[verdict.how.split(":")[0]] += 1
        for finding in verdict.findings:
            kinds[finding.kind] += 1
            print(f"{case.seed} [{finding.kind}] {case.name}\n    {finding.words[:400]}",
                  flush=True)
        if verdict.findings and options.sources:
            print(case.source)
    print(f"{sum(counts.values())} functions, {time.monotonic() - began:.0f} s: {dict(counts)}; "
          f"findings {dict(kinds)}")
    return 1 if kinds else 0


if __name__ == "__main__":
    sys.exit(main())
