"""The index of a circuit, told from its network: LP1, section 3.1, and the same for coils."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

__all__ = ["Topology", "look_at"]

Edge = tuple[str, str, str, str]               # name, its two nodes, kind


@dataclass(frozen=True)
class Topology:
    """What the network says about the index.

    Attributes
    ----------
    index : int or None
        0, 1 or 2; None where the network contradicts itself or leaves something open.
    loops : tuple of tuple of str
        Loops of capacitors and voltage sources that raise the index, by names of branches.
    cuts : tuple of tuple of str
        Coils and current sources that are all that joins two parts of the circuit.
    impossible : str
        Why there is no solution, or more than one; empty if all is well.
    is_certain : bool
        False with elements that are controlled, of which the network does not tell everything.
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
            "to zero, so that one of them follows from the others, and its current from their "
            "derivatives." for loop in self.loops
        ]
        words += [
            f"{_listed(cut)} are all that joins two parts of the circuit. Their currents add up to "
            "zero, so that one of them follows from the others, and the voltage of a coil from "
            "their derivatives." if len(cut) > 1 else
            f"{cut[0]} is all that joins two parts of the circuit, so that no current can flow "
            "through it, and its voltage follows from a derivative." for cut in self.cuts
        ]
        if self.index == 0:
            words = ["capacitors join every node to ground, and there is no voltage source, so "
                     "that all equations are differential."]
        elif not words:
            words = ["no loop of capacitors and voltage sources, no cut of coils and current "
                     "sources."]
        if not self.is_certain:
            words.append("Controlled elements may change that: analyze() tells for certain.")
        return f"Index {self.index}: " + " ".join(words)


def look_at(edges: Sequence[Edge], form: str = "nodal") -> Topology:
    """Find loops and cuts; `form` is "nodal" or "tableau"."""
    if form not in ("nodal", "tableau"):
        raise ValueError(f"form must be 'nodal' or 'tableau', got {form!r}")
    parts = _parts(edges)
    if len(parts) > 1:
        lost = next(part for part in parts if "0" not in part)
        return Topology(None, impossible=(
            f"Nothing joins {_listed(sorted(lost))} to ground: the voltages there are left open."
        ))
    kinds = {name: kind for name, _, _, kind in edges}
    sources = _loops([edge for edge in edges if edge[3] == "V"])
    if sources:
        return Topology(None, impossible=(
            f"{_listed(sources[0])} form a loop of voltage sources alone: their voltages "
            "contradict each other, or leave the current in the loop open."
        ))
    starved = _cuts(edges, ("I",))
    if starved:
        return Topology(None, impossible=(
            f"{_listed(starved[0])} are the only way into a part of the circuit: current sources "
            "alone contradict each other, or leave a voltage open."
        ))
    # voltage sources first: what closes a loop is then a capacitor
    loops = _loops([edge for kind in "VC" for edge in edges if edge[3] == kind])
    if form == "nodal":                        # voltages of capacitors are no unknowns there
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
    """Nodes that are joined to each other."""
    parts: list[set[str]] = [{"0"}]
    for _, a, b, _ in edges:
        met = [part for part in parts if a in part or b in part]
        parts = [part for part in parts if part not in met]
        parts.append({a, b}.union(*met))
    return parts


def _loops(edges: Sequence[Edge]) -> list[tuple[str, ...]]:
    """Loops that close one after the other, as the branches are added; names of their branches."""
    tree: list[Edge] = []
    found = []
    for edge in edges:
        way = _way(tree, edge[1], edge[2])
        if way is None:
            tree.append(edge)
        else:
            found.append((*way, edge[0]))
    return found


def _way(tree: Sequence[Edge], begin: str, end: str) -> tuple[str, ...] | None:
    """Names of the branches that lead from a node to another; None if none do."""
    ways: dict[str, tuple[str, ...]] = {begin: ()}
    fresh = [begin]
    while fresh and end not in ways:
        node = fresh.pop()
        for name, a, b, _ in tree:
            for here, there in ((a, b), (b, a)):
                if here == node and there not in ways:
                    ways[there] = (*ways[node], name)
                    fresh.append(there)
    return ways.get(end)


def _cuts(edges: Sequence[Edge], kinds: tuple[str, ...]) -> list[tuple[str, ...]]:
    """Branches of some kinds that are all that joins a part of the circuit to the rest of it."""
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
