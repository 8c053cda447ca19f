"""The page "What does this message mean" of the documentation, from the texts of the messages.

``python -m tether.explain.messages > docs/reference/messages.md`` writes it.
"""

from __future__ import annotations

from tether.base.status import TEXTS, Status
from tether.explain.causes import CAUSES
from tether.explain.diagnosis import capitalised

__all__ = ["page"]

HEAD = """# What does this message mean

<!-- Written by `python -m tether.explain.messages > docs/reference/messages.md`; do not edit. -->

A run that fails returns `success=False` with all that was computed. `sol.message` says in a
few words what happened, `sol.diagnosis` has the details: `cause`, `where` (time, equations and
variables by name), `evidence`, `remedies`, and `plot()`.
`analyze(...).diagnosis` has the findings that need no step.

```python
from tether import solve_dae

def circuit(t, y, yp):
    voltage, current = y
    return [yp[0] + current, voltage - 2.0 * (t > 0.5) - current]

sol = solve_dae(circuit, (0, 1), [1.0, 1.0])
print(sol.diagnosis)               # equation 1 jumps at t = 0.5
sol = solve_dae(circuit, (0, 1), [1.0, 1.0], t_breaks=[0.5])
assert sol.success
```

"""


def page() -> str:
    """Write the page of the documentation from the texts of the messages."""
    lines = [HEAD.rstrip("\n"), "", "## By cause", ""]
    for cause, text in CAUSES.items():
        example = capitalised(_shown(text.sentence, text.example))
        lines += [f"### {text.title}: `{cause.value}`", "", f"> {example}", ""]
        lines += [text.meaning, ""]
        lines += [f"- {_shown(remedy)}" for remedy in text.remedies]
        lines += [""] if text.remedies else []
        for situation, remedies in text.instead.items():
            lines += [f"{situation[:1].upper()}{situation[1:]}:", ""]
            lines += [*(f"- {_shown(remedy)}" for remedy in remedies), ""]
    lines += ["## By status", "", "| status | meaning |", "|---|---|"]
    lines += [f"| `{Status(status).name}` ({int(status)}) | {text} |"
              for status, text in TEXTS.items()]
    return "\n".join(lines) + "\n"


def _shown(template: str, what: str = "") -> str:
    """Fill in a template with an example."""
    equations = "equations 0, 1" if "one of {equations}" in template else "equation 1"
    return template.format(
        t="0.5", breaks="[0.5]", at=" at t = 0.5", what=what, equations=equations,
        variables="current",
    )


if __name__ == "__main__":
    print(page(), end="")
