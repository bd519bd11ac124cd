"""Internal helpers shared by all packages of similia."""
