"""What every room needs and no user sees."""
