"""Command line as a module: `python -m largesse`."""

from largesse.cli import main

if __name__ == "__main__":
    main()
