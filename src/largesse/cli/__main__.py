"""`python -m largesse.cli`."""

from largesse.cli.entry import main

if __name__ == "__main__":
    main()
