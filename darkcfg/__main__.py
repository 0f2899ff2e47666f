"""`python -m darkcfg`."""

from darkcfg.cli import main

if __name__ == "__main__":
    main()
