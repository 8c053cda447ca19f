"""Results of runs: solutions, summaries, files, tables and plots."""
