"""SMCalFlow: the dataset, and the normal form in which its Lispress programs are compared."""
