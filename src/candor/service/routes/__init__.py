"""The addresses of the service, a file for each group of them: the route, and the work behind it."""
