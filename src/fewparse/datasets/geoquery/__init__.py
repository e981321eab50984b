"""GeoQuery (Zelle and Mooney, 1996): questions about US geography, as SQL."""
