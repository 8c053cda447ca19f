"""The analysis of a system as an `IndexReport`, in words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from tether._core import probe
from tether.explain.report import HiddenConstraint, Incidence, IndexReport
from tether.explain.start_words import start_words
from tether.plan.memory import new_state
from tether.plan.model import AsWritten
from tether.problem.names import Names
from tether.problem.options import Options
from tether.problem.problem import Problem
from tether.start.high_index import find_kinds
from tether.structure.analysis import Analysis, analyze_trace
from tether.structure.equations import MOST_DENSE
from tether.structure.freedom import free_unknowns
from tether.structure.hidden import Reduced, has_slopes
from tether.structure.modes import find_modes
from tether.structure.ranks import ArrayRanks
from tether.structure.scaling import Units
from tether.structure.sigma import Signature, Unmatched
from tether.trace import TraceFailure, trace, verify
from tether.trace.derive import switches

__all__ = ["describe", "report_on"]

NOT_RUN = "not possible: the equations do not determine one solution"
MOST_LISTED = 8
MOST_COMBINATIONS = 3


def describe(found: Analysis, titles: tuple[str, ...] = ()) -> IndexReport:
    """Make the report of a traced system; titles are names of the equations."""
    names = list(found.names or found.traced.names)
    why_singular = tuple(_on_singularity(found, Names(tuple(names), titles)))
    full = None if found.reduced is None else found.reduced.plain or found.reduced.full
    signature = found.given.signature
    incidence = Incidence(
        tuple((i, j, k) for i, row in enumerate(found.given.orders) for j, k in row.items()),
        signature.match if isinstance(signature, Signature) else (),
    )
    dependent, undetermined = _singular_parts(found)
    # a derivative array implies its constraints, it does not contain them
    hidden = [] if full is None or full.enters else _hidden(found, full, names)
    return IndexReport(
        n=found.given.n,
        index=found.index,
        structural_index=found.structural_index,
        local_index=found.local_index,
        agree=found.index is not None and found.index == found.local_index,
        dof=found.dof,
        free=_free(found, names),
        hidden=hidden,
        n_hidden=_count_hidden(found, hidden),
        repair=_repair(found),
        singular=bool(dependent or undetermined),
        dependent=tuple(sorted(dependent)),
        undetermined=tuple(names[j] for j in sorted(undetermined)),
        constraints=[] if full is None else [*_constraints(found, full, names)],
        traced=True,
        notes=(*found.traced.notes, *_nowhere(found, names), *why_singular, *_notes(found, names)),
        why_singular=why_singular,
        how=_how(found),
        names=tuple(names),
        incidence=incidence,
    )


def report_on(
    problem: Problem,
    t: float,
    y: np.ndarray,
    yp: np.ndarray | None,
    labels: Sequence[str] | None,
    options: Options,
    titles: tuple[str, ...] = (),
) -> IndexReport:
    """Analyse a problem and make the report, of its equations or of its values alone."""
    if problem.capsule is not None:
        return describe_local(problem, t, y, yp, labels, options, "the residual is a C function")
    slopes = np.zeros_like(y) if yp is None else yp
    try:
        traced = trace(problem.fun, len(y), problem.args, problem.fills)
        verify(traced, problem.fun, t, y, slopes, problem.args, problem.fills)
    except TraceFailure as failure:
        return describe_local(problem, t, y, yp, labels, options, f"not traced: {failure}")
    modes = find_modes(traced, form=1)
    if modes is not None:
        traced = modes.equations(modes.sides(t, y, slopes, traced.args.flatten(problem.args)))
    units = Units.of_options(options, y)
    found = analyze_trace(
        traced, t, y, yp, problem.args, names=labels, thorough=True, units=units
    )
    return describe(found, titles)


def describe_local(
    problem: Problem,
    t: float,
    y: np.ndarray,
    yp: np.ndarray | None,
    names: Sequence[str] | None,
    options: Options,
    reason: str,
) -> IndexReport:
    """Make the report of a residual that is known only by its values."""
    n = len(y)
    labels = tuple(names or [f"y[{j}]" for j in range(n)])
    state = new_state(AsWritten(problem, n), options)
    slopes = np.zeros_like(y) if yp is None else yp
    state.given = t, y, slopes
    state.h = 1.0                              # increments of differences depend on it
    known = probe.move_to(state, t, y, slopes) == 0
    pencil = find_kinds(state, t, y, slopes) if known else None
    notes = [reason, "the index is local: that of the system linearised near the start"]
    if pencil is None:
        notes.append("the residual is not finite at the start")
    singular = pencil is not None and pencil.singular
    index = None if pencil is None else pencil.index
    return IndexReport(
        n=n,
        index=index,
        structural_index=None,
        local_index=index,
        agree=True,
        dof=None if pencil is None or singular else pencil.dof,
        free=(),
        hidden=[],
        n_hidden=None,
        repair="none",
        singular=singular,
        dependent=() if pencil is None else pencil.dependent,
        undetermined=() if pencil is None else tuple(labels[j] for j in pencil.undetermined),
        constraints=[],
        traced=False,
        notes=tuple(notes),
        how=NOT_RUN if singular else "as written",
        names=labels,
    )


def _singular_parts(found: Analysis) -> tuple[set[int], set[int]]:
    """Equations that depend on each other and variables that are left open."""
    n = found.given.n
    if found.ranks is not None and found.ranks.kind == "regular":
        return set(), set()
    for signature in (found.given.signature, _repaired_signature(found)):
        if isinstance(signature, Unmatched):
            combined = found.repaired.combinations if found.repaired else ()
            last = combined[-1].factors if combined else signature.equations
            return set(last), set(signature.variables)
    redundancy = found.redundancy
    if redundancy is not None and redundancy.kind in ("redundant", "open"):
        return (
            {i for i in redundancy.equations if i < n}, {j for j in redundancy.unknowns if j < n}
        )
    if found.repaired is not None and found.repaired.dependent:
        return {i for part in found.repaired.dependent for i in part.factors}, set()
    if found.ranks is not None and found.ranks.kind == "singular":
        return set(found.ranks.dependent), set(found.ranks.undetermined)
    if found.reduced is None and found.pencil is not None and found.pencil.singular:
        return set(found.pencil.dependent), set(found.pencil.undetermined)
    return set(), set()


def _count_hidden(found: Analysis, hidden: Sequence[HiddenConstraint]) -> int | None:
    if found.ranks is not None and found.ranks.kind == "regular":
        return found.ranks.hidden
    return None if found.reduced is None else len(hidden)


def _repair(found: Analysis) -> str:
    """Name the last of the repairs that were needed."""
    if found.ranks is not None:
        return "derivative array"
    combinations = () if found.repaired is None else found.repaired.combinations
    if any(combination.varying for combination in combinations):
        return "varying combinations"
    return "combinations" if combinations else "none"


def _repaired_signature(found: Analysis) -> Signature | Unmatched | None:
    return None if found.repaired is None else found.repaired.system.signature


# --- notes ------------------------------------------------------------------------------------


def _notes(found: Analysis, names: Sequence[str]) -> Iterator[str]:
    if found.repaired is None or isinstance(found.repaired.system.signature, Unmatched):
        return                                 # `_on_singularity` says the rest
    combinations = found.repaired.combinations
    for combination in combinations[:MOST_COMBINATIONS]:
        numbers = _listed(map(str, sorted(combination.factors)))
        factors = ", with factors that vary" if combination.varying else ""
        yield f"leading derivatives cancel between equations {numbers}{factors}"
    if len(combinations) > MOST_COMBINATIONS:
        yield f"and in {len(combinations) - MOST_COMBINATIONS} further combinations"
    yield from _on_ranks(found)
    yield from _on_start(found, names)
    if found.reduced is None:
        if found.pencil is None and found.given.n <= MOST_DENSE:
            yield "the equations are not finite at the start"
        if found.index is not None and _is_unknown(found.ranks):
            yield (
                "leading derivatives cancel in a way that was not resolved; index and freedom are "
                "those of the linearised system"
            )
    elif not found.reduced.as_given and _kinks(found.reduced):
        yield (
            "equations that are differentiated have kinks (abs, max, if, ...); the solution may "
            "jump there"
        )
    known = found.reduced is not None or not _is_unknown(found.ranks)
    if known and found.pencil is not None and found.local_index != found.index:
        if found.redundant or found.index is None:
            return
        local = "singular" if found.local_index is None else f"of index {found.local_index}"
        yield f"the system linearised near the start is {local}"


def _is_unknown(ranks: ArrayRanks | None) -> bool:
    return ranks is None or ranks.kind == "unknown"


def _on_ranks(found: Analysis) -> Iterator[str]:
    """Say what the derivative array has shown, and what it could not show."""
    ranks = found.ranks
    if ranks is None or ranks.kind == "unknown":
        return
    if ranks.kind == "singular":
        yield "differentiating the equations does not help: their derivatives repeat each other too"
        return
    yield (
        "leading derivatives cancel in a way that combinations of equations do not resolve; index "
        "and freedom are those of the derivative array, with "
        f"{ranks.constraints} constraint{_plural(ranks.constraints)} on y, {ranks.hidden} hidden"
    )
    if not ranks.consistent:
        yield "no point was found that satisfies the derivative array: its ranks are doubtful"
    elif found.reduced is None and ranks.index is not None and ranks.index > 1:
        yield "no system of lower index was found that holds at the start and near it"


def _nowhere(found: Analysis, names: Sequence[str]) -> Iterator[str]:
    """Name variables that occur in no equation."""
    singular = found.given.signature
    if isinstance(singular, Unmatched):
        used = {j for row in found.given.orders for j in row}
        nowhere = [names[j] for j in singular.variables if j not in used]
        if nowhere:
            yield f"in no equation: {_listed(nowhere)}"


def _on_singularity(found: Analysis, names: Names) -> Iterator[str]:
    """Name equations that share too few variables, as written or combined."""
    singular = found.given.signature
    if not isinstance(singular, Unmatched):
        left = _repaired_signature(found)
        if isinstance(left, Unmatched):
            assert found.repaired is not None
            if found.repaired.combinations:
                factors = found.repaired.combinations[-1].factors
                numbers = _listed(names.number(i) for i in sorted(factors))
                yield f"equations {numbers}, combined, contain no variable"
            else:                              # a derivative that is zero there, such as tanh'(20)
                numbers = _listed(names.number(i) for i in sorted(left.equations))
                word = f"equation{_plural(len(left.equations))}"
                yield f"at these values too few variables occur in {word} {numbers}"
        return
    inside = sorted({j for i in singular.equations for j in found.given.orders[i]})
    variables = f" ({_listed(map(names.variable, inside))})" if inside else ""
    yield (
        f"structurally singular: {len(singular.equations)} "
        f"equation{_plural(len(singular.equations))} "
        f"({_listed(map(str, singular.equations))}) for {len(inside)} "
        f"variable{_plural(len(inside))}{variables}"
    )


def _on_start(found: Analysis, names: Sequence[str]) -> Iterator[str]:
    if found.start is not None and not found.start.success:
        yield f"no consistent start: {start_words(found.start.reason, Names(tuple(names)))}"
    redundancy = found.redundancy
    if redundancy is None or redundancy.kind == "none":
        return
    n = found.given.n
    equations = _listed(str(i) for i in redundancy.equations if i < n)
    variables = _listed(names[j] for j in redundancy.unknowns if j < n)
    if redundancy.kind == "redundant":
        yield (
            f"{variables}: not unique, because equations {equations} repeat each other; the "
            "smallest values are taken, the motion is not affected"
        )
    elif redundancy.kind == "point":
        yield f"equations {equations} depend on each other at the start, but not near it"
    else:
        yield (
            f"equations {equations} depend on each other on the solutions and leave {variables} "
            "open"
        )


def _kinks(reduced: Reduced) -> bool:
    system, signature = reduced.source
    return any(
        switches(system.graph, [system.rows[i]], c) for i, c in enumerate(signature.c) if c > 0
    )


def _how(found: Analysis) -> str:
    reduced = found.reduced
    if reduced is None and found.index is None:
        return NOT_RUN
    if opaques := found.given.graph.opaques:
        name = getattr(opaques[0], "__name__", "a function")
        return f"as written, and called as it is: {name} can only be called from Python"
    if reduced is None or reduced.as_given:
        return "as written"
    more = reduced.n - reduced.n_user
    extra = f" with {more} further unknown{_plural(more)}" if more else ""
    count = len(reduced.levels)
    if reduced.enters:
        return (
            f"reduced to index {reduced.form}{extra}, projected onto the {count} equations of the "
            "derivative array in every step"
        )
    onto = f", projected onto {count} constraint{_plural(count)} in every step" if count else ""
    return f"reduced to index {reduced.form}{extra}{onto}"


def _plural(count: int) -> str:
    return "" if count == 1 else "s"


def _listed(words: Iterable[str]) -> str:
    words = list(words)
    shown = ", ".join(words[:MOST_LISTED])
    return shown + (f" and {len(words) - MOST_LISTED} more" if len(words) > MOST_LISTED else "")


# --- freedom and constraints --------------------------------------------------------------------


def _free(found: Analysis, names: Sequence[str]) -> tuple[str, ...]:
    start = found.start
    if found.reduced is None or start is None or not start.success or not found.dof:
        return ()
    full = found.reduced.full
    labels = full.names(names)
    return tuple(labels[j] for j in free_unknowns(full, found.t, start.y))


def _hidden(found: Analysis, full: Reduced, names: Sequence[str]) -> list[HiddenConstraint]:
    """Equations that are implied: derivatives, and combinations in place of given ones."""
    system, signature = full.source
    combinations = () if found.repaired is None else found.repaired.combinations
    combined = {combination.replaced for combination in combinations}
    entries = [
        (level.equation, level.order, level.node)
        for level in full.levels
        if level.order > 0 or level.equation in combined
    ]
    algebraic = 0 in signature.d
    for i, (c, top) in enumerate(zip(signature.c, full.tops, strict=True)):
        implied = top != system.rows[i] if c > 0 else i in combined
        if implied and (algebraic or not has_slopes(full.graph, top)):
            entries.append((i, c, top))
    return [_constraint(found, full, names, *entry) for entry in sorted(entries)]


def _constraints(found: Analysis, full: Reduced, names: Sequence[str]) -> list[HiddenConstraint]:
    """All conditions on y alone that are not equations for multipliers."""
    every = [
        _constraint(found, full, names, level.equation, level.order, level.node)
        for level in full.levels
    ]
    return [constraint for constraint in every if constraint.of_y]


def _constraint(
    found: Analysis, full: Reduced, names: Sequence[str], equation: int, order: int, node: int
) -> HiddenConstraint:
    return HiddenConstraint(
        equation=equation,
        order=order,
        graph=full.graph,
        node=node,
        names=tuple(full.names(names)),
        n=full.n_user,
        layout=found.traced.args,
        values=full.args,
    )
