"""The reader of a hospital's own query: over a folder of tables or FHIR resources, or on a database server."""
