"""Display classes: what explainers find, drawn by matplotlib."""
