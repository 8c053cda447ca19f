"""The index of a circuit, found from its network: LP1, section 3.1, and the same for coils."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

__all__ = ["Topology", "analyze_network"]

Edge = tuple[str, str, str, str]               # name, its two nodes, kind


@dataclass(frozen=True)
class Topology:
    """What the network shows about the index.

    Attributes
    ----------
    index : int or None
        0, 1 or 2; None if the network is contradictory or leaves something undetermined.
    loops : tuple of tuple of str
        Loops of capacitors and voltage sources that raise the index, by names of branches.
    cuts : tuple of tuple of str
        Coils and current sources that are the only connection of two parts of the circuit.
    impossible : str
        Why there is no solution, or more than one; empty if there is exactly one.
    is_certain : bool
        False with controlled elements, whose effect the network does not show.
    """

    index: int | None
    loops: tuple[tuple[str, ...], ...] = ()
    cuts: tuple[tuple[str, ...], ...] = ()
    impossible: str = ""
    is_certain: bool = True

    def __str__(self) -> str:
        """Explain it in words."""
        if self.impossible:
            return self.impossible
        words = [
            f"{_listed(loop)} form a loop of capacitors and voltage sources. Their voltages add up "
            "to zero, so one of them follows from the others, and its current from their "
            "derivatives." for loop in self.loops
        ]
        words += [
            f"{_listed(cut)} are the only connections of two parts of the circuit. Their currents "
            "add up to zero, so one of them follows from the others, and the voltage of a coil "
            "from their derivatives." if len(cut) > 1 else
            f"{cut[0]} is the only connection of two parts of the circuit, so no current can flow "
            "through it, and its voltage follows from a derivative." for cut in self.cuts
        ]
        if self.index == 0:
            words = ["capacitors connect every node to ground, and there is no voltage source, so "
                     "all equations are differential."]
        elif not words:
            words = ["no loop of capacitors and voltage sources, no cut of coils and current "
                     "sources."]
        if not self.is_certain:
            words.append("Controlled elements may change that: analyze() finds the actual index.")
        return f"Index {self.index}: " + " ".join(words)


def analyze_network(edges: Sequence[Edge], form: str = "nodal") -> Topology:
    """Find loops and cuts; `form` is "nodal" or "tableau"."""
    if form not in ("nodal", "tableau"):
        raise ValueError(f"form must be 'nodal' or 'tableau', got {form!r}")
    parts = _parts(edges)
    if len(parts) > 1:
        lost = next(part for part in parts if "0" not in part)
        return Topology(None, impossible=(
            f"Nothing connects {_listed(sorted(lost))} to ground: their voltages are undetermined."
        ))
    kinds = {name: kind for name, _, _, kind in edges}
    sources = _loops([edge for edge in edges if edge[3] == "V"])
    if sources:
        return Topology(None, impossible=(
            f"{_listed(sources[0])} form a loop of voltage sources alone: their voltages "
            "contradict each other, or leave the current in the loop undetermined."
        ))
    starved = _cuts(edges, ("I",))
    if starved:
        return Topology(None, impossible=(
            f"{_listed(starved[0])} are the only connections of a part of the circuit: current "
            "sources alone contradict each other, or leave a voltage undetermined."
        ))
    # voltage sources first, so that loops are closed by capacitors
    loops = _loops([edge for kind in "VC" for edge in edges if edge[3] == kind])
    if form == "nodal":                        # where voltages of capacitors are not unknowns
        loops = [loop for loop in loops if any(kinds[name] == "V" for name in loop)]
    cuts = _cuts(edges, ("L", "I"))
    index = 2 if loops or cuts else 1
    if form == "nodal" and not {"V", "X"} & set(kinds.values()):
        nodes = {node for edge in edges for node in edge[1:3]}
        charged = _parts([edge for edge in edges if edge[3] == "C"])
        index = 0 if any(nodes <= part for part in charged) else index
    return Topology(
        index, tuple(loops), tuple(cuts),
        is_certain=all(kind != "X" for kind in kinds.values()),
    )


def _parts(edges: Iterable[Edge]) -> list[set[str]]:
    """Return sets of nodes that are connected to each other."""
    parts: list[set[str]] = [{"0"}]
    for _, a, b, _ in edges:
        met = [part for part in parts if a in part or b in part]
        parts = [part for part in parts if part not in met]
        parts.append({a, b}.union(*met))
    return parts


def _loops(edges: Sequence[Edge]) -> list[tuple[str, ...]]:
    """Loops that close as branches are added one after another; names of their branches."""
    tree: list[Edge] = []
    found = []
    for edge in edges:
        path = _path(tree, edge[1], edge[2])
        if path is None:
            tree.append(edge)
        else:
            found.append((*path, edge[0]))
    return found


def _path(tree: Sequence[Edge], begin: str, end: str) -> tuple[str, ...] | None:
    """Names of the branches on the path from one node to another; None if there is none."""
    paths: dict[str, tuple[str, ...]] = {begin: ()}
    fresh = [begin]
    while fresh and end not in paths:
        node = fresh.pop()
        for name, a, b, _ in tree:
            for here, there in ((a, b), (b, a)):
                if here == node and there not in paths:
                    paths[there] = (*paths[node], name)
                    fresh.append(there)
    return paths.get(end)


def _cuts(edges: Sequence[Edge], kinds: tuple[str, ...]) -> list[tuple[str, ...]]:
    """Branches of some kinds that are the only connections of a part of the circuit."""
    nodes = {node for edge in edges for node in edge[1:3]}
    others = [edge for edge in edges if edge[3] not in kinds]
    parts = _parts([*others, *[("", node, node, "") for node in nodes]])
    found = []
    for part in parts:
        if "0" in part:
            continue
        found.append(tuple(name for name, a, b, _ in edges if (a in part) != (b in part)))
    return found


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
