"""Models that continue texts, on one device or several."""
