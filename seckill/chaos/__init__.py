"""Real processes under load, faults on a schedule, an audit all along, and a report that says what held."""
