"""What people parse into: domain folders, read and bundled."""
