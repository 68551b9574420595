"""Ensembles: several tasks' models that answer together, weighted by what voters measured of each."""
