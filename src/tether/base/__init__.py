"""What every room uses: checks of arguments, statuses, sizes."""
