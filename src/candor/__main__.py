"""`python -m candor` is the `candor` command."""

from candor.cli import main

if __name__ == "__main__":
    main()
