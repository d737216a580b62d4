"""How fast the conversions are, against the machine's limit and against other libraries: ``python -m bench``."""
