"""What the linearised equations say about a system: its index and the kinds of its variables."""
