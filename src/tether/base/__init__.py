"""Used by every room: checks of arguments, statuses, sizes."""
