"""Objects and models that several test files share."""
