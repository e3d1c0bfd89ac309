"""All results as one folder of tables and figures."""
