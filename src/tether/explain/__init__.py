"""Words: causes, diagnoses, doubts, reports."""
