"""`python -m fewparse`: the command line."""

from fewparse.cli.main import run

if __name__ == "__main__":
    run()
