"""What is integrated for a problem."""
